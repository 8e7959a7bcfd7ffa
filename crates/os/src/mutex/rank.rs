//! Lock ranks, and in debug builds a check that threads keep to their order.
//!
//! A thread that holds a lock waits only for higher ranks; `fork` takes all locks in this order.
//! Locks without a rank and non-blocking attempts are unchecked. A violation aborts.

/// Locks are taken in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Rank {
    /// No other lock is taken under it.
    None,
    SetUp,
    LimitCallback,
    ThreadCaches,
    HeapTable,
    NamedHeap,
    CacheTable,
    ObjectCache,
    CacheArrays,
    SizeClass,
    Morphs,
    Pages,
    Huge,
    KitQuarantine,
    KitGuards,
    KitTable,
    KitSetting,
    StatsFile,
    Recorder,
    TraceAsked,
    TracePath,
    Profile,
    ProfilePath,
    ReportsPath,
}

#[cfg(all(debug_assertions, not(loom)))]
pub use witness::trust;
#[cfg(all(debug_assertions, not(loom)))]
pub(super) use witness::{check, gave, took};

#[cfg(any(not(debug_assertions), loom))]
mod silent {
    use super::Rank;

    /// Two tasks share a thread pointer.
    #[inline(always)]
    pub fn trust() {}
    #[inline(always)]
    pub(in crate::mutex) fn check(_rank: Rank, _for_fork: bool) {}
    #[inline(always)]
    pub(in crate::mutex) fn took(_rank: Rank) {}
    #[inline(always)]
    pub(in crate::mutex) fn gave(_rank: Rank) {}
}
#[cfg(any(not(debug_assertions), loom))]
pub use silent::trust;
#[cfg(any(not(debug_assertions), loom))]
pub(super) use silent::{check, gave, took};

#[cfg(all(debug_assertions, not(loom)))]
mod witness {
    use super::Rank;
    use crate::{Line, thread};
    use core::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering::Relaxed};

    const RANKS: usize = Rank::ReportsPath as usize + 1;
    const THREADS: usize = 64;

    /// Only the holder changes it.
    pub(super) struct Held {
        thread: AtomicUsize,
        counts: [AtomicU16; RANKS],
    }

    impl Held {
        pub(super) const fn new() -> Self {
            Self { thread: AtomicUsize::new(0), counts: [const { AtomicU16::new(0) }; RANKS] }
        }

        pub(super) fn highest(&self) -> Option<usize> {
            (1..RANKS).rev().find(|rank| self.counts[*rank].load(Relaxed) > 0)
        }

        pub(super) fn allows(&self, rank: Rank, for_fork: bool) -> bool {
            self.highest().is_none_or(|highest| highest < rank as usize || for_fork && highest == rank as usize)
        }

        pub(super) fn add(&self, rank: Rank) {
            self.counts[rank as usize].fetch_add(1, Relaxed);
        }

        /// Whether none is left.
        pub(super) fn remove(&self, rank: Rank) -> bool {
            let count = &self.counts[rank as usize];
            // Locks from before the thread had a place are unknown.
            let _ = count.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
            self.highest().is_none()
        }
    }

    static TABLE: [Held; THREADS] = [const { Held::new() }; THREADS];
    static TRUSTS: AtomicBool = AtomicBool::new(false);

    /// With `claim`, a free place if it has none.
    fn own(claim: bool) -> Option<&'static Held> {
        let thread = thread::pointer();
        let has = |held: &&Held| held.thread.load(Relaxed) == thread;
        let take = |held: &&Held| held.thread.compare_exchange(0, thread, Relaxed, Relaxed).is_ok();
        TABLE.iter().find(has).or_else(|| if claim { TABLE.iter().find(take) } else { None })
    }

    pub fn trust() {
        TRUSTS.store(true, Relaxed);
    }

    fn watches(rank: Rank) -> bool {
        rank != Rank::None && !TRUSTS.load(Relaxed)
    }

    pub(in crate::mutex) fn check(rank: Rank, for_fork: bool) {
        if watches(rank)
            && let Some(held) = own(false)
            && !held.allows(rank, for_fork)
        {
            out_of_order(held.highest().unwrap_or(0), rank);
        }
    }

    pub(in crate::mutex) fn took(rank: Rank) {
        if watches(rank)
            && let Some(held) = own(true)
        {
            held.add(rank);
        }
    }

    pub(in crate::mutex) fn gave(rank: Rank) {
        if rank != Rank::None
            && let Some(held) = own(false)
            && held.remove(rank)
        {
            held.thread.store(0, Relaxed);
        }
    }

    #[cold]
    fn out_of_order(held: usize, rank: Rank) -> ! {
        let line =
            Line::new().text("craton: locks out of order: rank ").number(rank as u64).text(" is waited for while ");
        line.number(held as u64).text(" is held (crates/os/src/mutex/rank.rs)").abort()
    }
}

#[cfg(all(test, debug_assertions, not(loom)))]
mod tests;
