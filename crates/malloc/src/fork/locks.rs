//! The locks of the process in the order in which a thread may take them.
//!
//! **What.** A thread that holds a lock waits only for locks of a higher rank ([`Rank`]; debug builds check it). A fork takes
//! all of them in this order, so that no other thread is inside anything when the process is copied, and gives them up in
//! the opposite order. A lock that is missing here could be held for ever in the child.
//!
//! **Unsafe.** Gives up, after a fork, locks that were taken before it.

use crate::statics::{HEAP, HEAPS, KIT, LIMITS, OBJECT_CACHES, REGISTRY, SETTING_UP, STATS_FILE, TRACE};
use craton_os::Rank;

/// A lock, or the locks of a part, which follow each other.
struct Entry {
    /// Of the first.
    rank: Rank,
    hold: fn(nested: bool),
    release: unsafe fn(),
}

/// An entry for what has `hold_for_fork` and `release_after_fork`.
macro_rules! lock {
    ($rank:ident: $($lock:tt)+) => {
        Entry {
            rank: Rank::$rank,
            hold: |nested| $($lock)+ hold_for_fork(nested),
            // SAFETY: `release_all` says that this thread, or the one that it is a copy of, took it by `hold`.
            release: || unsafe { $($lock)+ release_after_fork() },
        }
    };
}

/// All of them.
const LOCKS: [Entry; 11] = [
    lock!(SetUp: SETTING_UP.),
    lock!(LimitCallback: LIMITS.callback.function.),
    lock!(ThreadCaches: REGISTRY.),
    lock!(HeapTable: HEAPS.),
    lock!(CacheTable: OBJECT_CACHES.),
    lock!(SizeClass: HEAP.),
    lock!(KitQuarantine: KIT.),
    lock!(StatsFile: STATS_FILE.),
    lock!(Recorder: TRACE.recorder.),
    lock!(TraceAsked: TRACE.asked.),
    lock!(TracePath: TRACE.path.),
];

const _: () = {
    let mut i = 1;
    while i < LOCKS.len() {
        assert!((LOCKS[i - 1].rank as u8) < LOCKS[i].rank as u8, "in the order of their ranks");
        i += 1;
    }
};

/// Takes all locks, before a fork; `nested` in a signal handler that interrupted a request.
pub(crate) fn hold_all(nested: bool) {
    LOCKS.iter().for_each(|lock| (lock.hold)(nested));
}

/// Gives all locks up after the fork.
///
/// # Safety
/// [`hold_all`] ran in the calling thread, or in the one that it is a copy of.
pub(crate) unsafe fn release_all() {
    for lock in LOCKS.iter().rev() {
        // SAFETY: by the contract.
        unsafe { (lock.release)() };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
