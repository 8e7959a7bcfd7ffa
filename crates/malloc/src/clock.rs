//! The time of the process: the kernel's coarse clock, which a test can have run faster.
//!
//! **What.** The environment variable `CRATON_TEST_CLOCK=N` makes N seconds, a power of two up to 1,024, pass in each
//! second. It is for tests of whole programs, so that a smoke test of what takes minutes takes seconds; it is no option,
//! and a privileged process does not read it.

use crate::here::ProcessClock;
use crate::statics::CLOCK_SHIFT;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::Clock;
use craton_os::{CoarseClock, Decimal};

/// The fastest: 2¹⁰ seconds a second.
const MOST: u32 = 10;

impl Clock for ProcessClock {
    fn now_ns(&self) -> u64 {
        CoarseClock.now_ns() << CLOCK_SHIFT.load(Relaxed)
    }
}

impl ProcessClock {
    /// Heeds the value of `CRATON_TEST_CLOCK`; one that is no number above 0 changes nothing.
    pub(crate) fn set_speed(value: &[u8]) {
        if let Some(shift) = shift(value) {
            CLOCK_SHIFT.store(shift, Relaxed);
        }
    }
}

fn shift(value: &[u8]) -> Option<u32> {
    Decimal::parse(value)?.checked_ilog2().map(|log| log.min(MOST))
}

#[cfg(all(test, not(loom)))]
mod tests;
