//! How many bytes pass between two samples.
//!
//! **What.** By default the interval begins at [`USUAL`] bytes, and doubles while samples cost more
//! than their budget, a [`PART`]-th of the time, or too many are live; it halves again later. An
//! interval that the option names stays.
//!
//! **Threads.** Relaxed counts: two threads at once may change the interval once for two.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use craton_heap::hooks::Countdown;
use craton_kit::{geometric, uniform};
use craton_os::process;

/// Bytes between two samples by default.
const USUAL: u64 = 512 << 10;
const MOST: u64 = 1 << 30;
/// At this interval no program's samples take long: 10 GB a second are 600 of them.
const MOST_FOR_TIME: u64 = 16 << 20;
/// Bytes after which a thread looks again whether the profile is on.
pub(crate) const OFF: Countdown = Countdown { left: 1 << 30, bytes: 0 };

const PART: u64 = 400;
/// Unused budget is kept up to this; and the first.
const SAVED_NS: i64 = 200_000;
const FIRST_NS: i64 = 500_000;
/// A sample whose thread was interrupted cost no more.
const DEAREST_NS: i64 = 100_000;
/// What its free will cost, and the slow requests before it did.
const AROUND_NS: i64 = 500;
/// Live samples: at more the interval doubles, at fewer it may halve.
const MANY: usize = 2048;
const FEW: usize = 1024;

pub(crate) struct Pace {
    /// Exclusive-or [`USUAL`]; 0 then: off.
    interval: AtomicU64,
    /// The option's, exclusive-or the default, [`AUTO`].
    asked: AtomicU64,
    budget_ns: AtomicI64,
    last_ns: AtomicU64,
    seed: AtomicU64,
}

/// The option's default.
pub(crate) const AUTO: u64 = u64::MAX;

impl Pace {
    pub(crate) const fn new() -> Self {
        Self {
            interval: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            budget_ns: AtomicI64::new(0),
            last_ns: AtomicU64::new(0),
            seed: AtomicU64::new(0),
        }
    }

    /// `None`: off.
    pub(crate) fn interval(&self) -> Option<u64> {
        Some(self.interval.load(Relaxed) ^ USUAL).filter(|bytes| *bytes > 0)
    }

    /// [`AUTO`], 0 for off, or bytes.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Relaxed) ^ AUTO
    }

    pub(crate) fn ask(&self, bytes: u64) {
        self.asked.store(bytes ^ AUTO, Relaxed);
        self.set(if bytes == AUTO { USUAL } else { bytes.min(MOST) });
    }

    fn set(&self, interval: u64) {
        self.interval.store(interval ^ USUAL, Relaxed);
    }

    /// Counts a sample's time; `live` samples there are.
    pub(crate) fn spend(&self, began_ns: u64, ended_ns: u64, live: usize) {
        let Some(interval) = self.interval().filter(|_| self.asked() == AUTO) else { return };
        let last_ns = self.last_ns.swap(began_ns, Relaxed);
        let earned = (began_ns.saturating_sub(last_ns) / PART) as i64;
        let spent = (ended_ns.saturating_sub(began_ns) as i64).min(DEAREST_NS) + AROUND_NS;
        let budget = match last_ns {
            0 => FIRST_NS,
            _ => self.budget_ns.load(Relaxed).saturating_add(earned.min(SAVED_NS)),
        };
        let (budget, interval) = match budget - spent {
            rest if live > MANY => (rest.max(0), (2 * interval).min(MOST)),
            rest if rest < 0 => (0, interval.max((2 * interval).min(MOST_FOR_TIME))),
            rest if rest >= SAVED_NS && live < FEW && interval > USUAL => (SAVED_NS / 2, interval / 2),
            rest => (rest.min(FIRST_NS), interval),
        };
        self.budget_ns.store(budget, Relaxed);
        self.set(interval);
    }

    /// Bytes up to the next point, each with the chance 1 / `interval`.
    pub(crate) fn gap(&self, interval: u64) -> i64 {
        geometric(self.random(), interval)
    }

    /// A child draws other numbers than its parent, whose seed it has, and than other children.
    pub(crate) fn forked(&self) {
        let number = u64::from(process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.seed.store(self.random() ^ number | 1, Relaxed);
    }

    pub(crate) fn random(&self) -> u64 {
        uniform(&self.seed).wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
