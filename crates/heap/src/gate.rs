//! The limits of one heap, and from which amount of memory on somebody has to look at them.
//!
//! **Units.** Bytes of memory in use: of the page heap what may have memory, its metadata, and huge objects whole.
//!
//! **State.** All zeros is a heap without limits. While memory is between `low` and `high` nothing is to be done, so that a
//! use of the heap costs two compares. A heap that could not be brought below its soft limit is looked at again when it has
//! grown by a step, and `low` is then where the limit would count anew.
//!
//! **Threads.** A limit that is set counts from the next use of the page heap's lock on, if not before. Who arms the gate looks again whether its soft
//! limit is still the one that is set; of two that arm it, one in each way, the later one is seen, or `low` sends somebody to look.

use craton_base::atomic::{AtomicU64, Ordering, Ordering::Relaxed};

/// A heap over its soft limit that has nothing to give is looked at again when it has grown by one part in so many of the limit.
const STEP_PART: u64 = 64;
const LEAST_STEP: u64 = 2 << 20;
/// A heap that passed its soft limit is brought below it by one part in so many, so that it does not pass it at once again.
const MARGIN_PART: u64 = 32;

/// The limits of a heap, and the watermark band between them.
pub struct Gate {
    /// 0 for none.
    soft: AtomicU64,
    hard: AtomicU64,
    /// The bitwise complement of `high`, so that zeros mean that it is out of reach.
    not_high: AtomicU64,
    low: AtomicU64,
    /// Bytes of huge objects that there are or that are about to be mapped.
    huge: AtomicU64,
}

impl Gate {
    /// Without limits.
    pub const fn open() -> Self {
        Self {
            soft: AtomicU64::new(0),
            hard: AtomicU64::new(0),
            not_high: AtomicU64::new(0),
            low: AtomicU64::new(0),
            huge: AtomicU64::new(0),
        }
    }

    /// Sets both limits, to count from now on.
    pub fn set(&self, soft: Option<u64>, hard: Option<u64>) {
        self.soft.store(soft.unwrap_or(0), Relaxed);
        self.hard.store(hard.unwrap_or(0), Relaxed);
        self.rearm();
    }

    /// The soft limit.
    pub fn soft(&self) -> Option<u64> {
        Some(self.soft.load(Relaxed)).filter(|s| *s > 0)
    }

    /// The hard limit.
    #[inline]
    pub fn hard(&self) -> Option<u64> {
        Some(self.hard.load(Relaxed)).filter(|h| *h > 0)
    }

    /// The tighter of both limits.
    pub fn tightest(&self) -> Option<u64> {
        self.soft().into_iter().chain(self.hard()).min()
    }

    /// How far a heap that has passed its soft limit is to be brought down.
    pub fn target(&self) -> u64 {
        self.soft().map_or(u64::MAX, |soft| soft - soft / MARGIN_PART)
    }

    /// Somebody looks when the soft limit is passed.
    pub fn rearm(&self) {
        self.for_soft(|soft| {
            self.low.store(0, Relaxed);
            self.look_from(soft.map_or(u64::MAX, |soft| soft.saturating_add(1)));
        });
    }

    /// The soft limit could not be kept: somebody looks when memory has grown by a step.
    pub fn rearm_above(&self, used: u64) {
        self.for_soft(|soft| {
            let soft = soft.unwrap_or(u64::MAX);
            // In this order: a heap that falls below `low` arms the gate, and is not outdone by what was stored here before.
            self.look_from(used.saturating_add((soft / STEP_PART).max(LEAST_STEP)));
            self.low.store(soft, Relaxed);
        });
    }

    /// Does so for the soft limit, again if another one was set meanwhile.
    fn for_soft(&self, arm: impl Fn(Option<u64>)) {
        loop {
            let soft = self.soft();
            arm(soft);
            if self.soft() == soft {
                return;
            }
        }
    }

    /// Somebody looks when so much is in use.
    pub fn look_from(&self, bytes: u64) {
        // ORDERING: AcqRel pairs with itself: the later one of two sees what the other one stored before, a soft limit or `low`.
        self.not_high.swap(!bytes, Ordering::AcqRel);
    }

    /// Bytes in use from which on the process should look.
    pub fn high(&self) -> u64 {
        !self.not_high.load(Relaxed)
    }

    /// Bytes in use below which the limit counts anew.
    pub fn low(&self) -> u64 {
        self.low.load(Relaxed)
    }

    /// Whether anybody is to look, ever.
    pub fn watches(&self) -> bool {
        self.not_high.load(Relaxed) != 0
    }

    /// Whether so many bytes in use are outside the band.
    #[inline(always)]
    pub fn is_outside(&self, used: u64) -> bool {
        used >= self.high() || used < self.low()
    }

    /// Bytes of huge objects that exist or are about to be mapped.
    pub fn huge(&self) -> u64 {
        self.huge.load(Relaxed)
    }

    /// Counts bytes of a huge object.
    pub fn add_huge(&self, bytes: u64) {
        self.huge.fetch_add(bytes, Relaxed);
    }

    /// Takes them off the count.
    pub fn remove_huge(&self, bytes: u64) {
        self.huge.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn without_limits_nothing_is_outside() {
        let gate = Gate::open();
        assert!(!gate.watches() && !gate.is_outside(0) && !gate.is_outside(u64::MAX - 1));
        assert_eq!((gate.soft(), gate.hard(), gate.tightest(), gate.target()), (None, None, None, u64::MAX));
    }

    #[test]
    fn the_soft_limit_itself_may_be_used() {
        let gate = Gate::open();
        gate.set(Some(1 << 30), Some(1 << 31));
        assert!(gate.watches() && !gate.is_outside(1 << 30) && gate.is_outside((1 << 30) + 1));
        assert_eq!(gate.tightest(), Some(1 << 30));
        assert!(gate.target() < 1 << 30);
        gate.set(None, Some(1 << 20));
        assert!(!gate.watches());
        assert_eq!(gate.tightest(), Some(1 << 20));
        gate.set(Some(u64::MAX), None);
        assert!(!gate.is_outside(u64::MAX - 1));
    }

    #[test]
    fn a_heap_that_stays_above_is_looked_at_again_after_a_step_or_below_the_limit() {
        let gate = Gate::open();
        gate.set(Some(1 << 30), None);
        let used = (1 << 30) + 5;
        gate.rearm_above(used);
        let step = (1 << 30) / STEP_PART;
        assert!(!gate.is_outside(used) && !gate.is_outside(used + step - 1) && gate.is_outside(used + step));
        assert!(!gate.is_outside(1 << 30) && gate.is_outside((1 << 30) - 1));
        gate.rearm();
        assert!(!gate.is_outside(0) && gate.is_outside(used));
    }
}
