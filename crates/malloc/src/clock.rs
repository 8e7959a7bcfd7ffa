//! The process's time: the kernel's coarse clock. For tests of whole programs `CRATON_TEST_CLOCK=N`
//! makes N seconds, a power of two up to 1,024, pass in each second. It is not an option, and a
//! privileged process ignores it.

use crate::here::ProcessClock;
use crate::statics::CLOCK_SHIFT;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::Clock;
use craton_os::{CoarseClock, Decimal};

/// Log2 of the highest speed.
const MOST: u32 = 10;

impl Clock for ProcessClock {
    fn now_ns(&self) -> u64 {
        CoarseClock.now_ns() << CLOCK_SHIFT.load(Relaxed)
    }
}

impl ProcessClock {
    /// Applies `CRATON_TEST_CLOCK`; ignores anything but a number above 0.
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
