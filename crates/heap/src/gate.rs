//! One heap's limits, and the watermark band in which no limit check is due.
//!
//! **Units.** Bytes in use: backed page heap, its metadata, and whole huge objects.
//!
//! **Threads.** A new limit counts from the next use of the page heap's lock at the latest. If two
//! threads arm the gate, the later one wins, or `low` triggers a check.

use craton_base::atomic::{AtomicU64, Ordering, Ordering::Relaxed};

/// A step of growth, as a fraction of the soft limit.
const STEP_PART: u64 = 64;
const LEAST_STEP: u64 = 2 << 20;
/// Otherwise the heap would pass its soft limit again at once.
const MARGIN_PART: u64 = 32;

pub struct Gate {
    /// 0: no limit.
    soft: AtomicU64,
    hard: AtomicU64,
    /// Complement of `high`: zero is out of reach.
    not_high: AtomicU64,
    low: AtomicU64,
    /// Includes huge objects about to be mapped.
    huge: AtomicU64,
}

impl Gate {
    pub const fn open() -> Self {
        Self {
            soft: AtomicU64::new(0),
            hard: AtomicU64::new(0),
            not_high: AtomicU64::new(0),
            low: AtomicU64::new(0),
            huge: AtomicU64::new(0),
        }
    }

    pub fn set(&self, soft: Option<u64>, hard: Option<u64>) {
        self.soft.store(soft.unwrap_or(0), Relaxed);
        self.hard.store(hard.unwrap_or(0), Relaxed);
        self.rearm();
    }

    pub fn soft(&self) -> Option<u64> {
        Some(self.soft.load(Relaxed)).filter(|s| *s > 0)
    }

    #[inline]
    pub fn hard(&self) -> Option<u64> {
        Some(self.hard.load(Relaxed)).filter(|h| *h > 0)
    }

    pub fn tightest(&self) -> Option<u64> {
        self.soft().into_iter().chain(self.hard()).min()
    }

    /// A heap over its soft limit shrinks to this.
    pub fn target(&self) -> u64 {
        self.soft().map_or(u64::MAX, |soft| soft - soft / MARGIN_PART)
    }

    /// The next check is due at the soft limit.
    pub fn rearm(&self) {
        self.for_soft(|soft| {
            self.low.store(0, Relaxed);
            self.look_from(soft.map_or(u64::MAX, |soft| soft.saturating_add(1)));
        });
    }

    /// The soft limit could not be kept: the next check is due a step later, or below `low`.
    pub fn rearm_above(&self, used: u64) {
        self.for_soft(|soft| {
            let soft = soft.unwrap_or(u64::MAX);
            // In this order: a heap that falls below `low` arms the gate, and must win.
            self.look_from(used.saturating_add((soft / STEP_PART).max(LEAST_STEP)));
            self.low.store(soft, Relaxed);
        });
    }

    /// Arms again if another soft limit was set meanwhile.
    fn for_soft(&self, arm: impl Fn(Option<u64>)) {
        loop {
            let soft = self.soft();
            arm(soft);
            if self.soft() == soft {
                return;
            }
        }
    }

    /// The next check is due at `bytes` in use.
    pub fn look_from(&self, bytes: u64) {
        // ORDERING: AcqRel pairs with itself: the later of two sees the soft limit or `low` that
        // the other stored before.
        self.not_high.swap(!bytes, Ordering::AcqRel);
    }

    pub fn high(&self) -> u64 {
        !self.not_high.load(Relaxed)
    }

    /// Below it the limit is re-armed.
    pub fn low(&self) -> u64 {
        self.low.load(Relaxed)
    }

    pub fn watches(&self) -> bool {
        self.not_high.load(Relaxed) != 0
    }

    #[inline(always)]
    pub fn is_outside(&self, used: u64) -> bool {
        used >= self.high() || used < self.low()
    }

    pub fn huge(&self) -> u64 {
        self.huge.load(Relaxed)
    }

    pub fn add_huge(&self, bytes: u64) {
        self.huge.fetch_add(bytes, Relaxed);
    }

    pub fn remove_huge(&self, bytes: u64) {
        self.huge.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
