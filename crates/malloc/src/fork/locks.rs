//! The process's locks in lock order.
//!
//! **What.** A thread waits only for locks of a higher rank ([`Rank`]; debug builds check it) than
//! it holds. A fork takes all in this order; its child would wait for ever for a lock missing here.
//!
//! **Unsafe.** Releases, after a fork, locks taken before it.

use crate::statics::{
    DEBUG_FILE, HEAP, HEAPS, KIT, LIMITS, OBJECT_CACHES, PROFILE, PROFILE_FILE, REGISTRY, SETTING_UP, STATS_FILE, TRACE,
};
use craton_os::Rank;

/// A lock, or a part's locks in sequence.
struct Entry {
    rank: Rank,
    hold: fn(nested: bool),
    release: unsafe fn(),
}

macro_rules! lock {
    ($rank:ident: $($lock:tt)+) => {
        Entry {
            rank: Rank::$rank,
            hold: |nested| $($lock)+ lock_for_fork(nested),
            // SAFETY: by `release_all`'s contract `hold` took it.
            release: || unsafe { $($lock)+ release_after_fork() },
        }
    };
}

const LOCKS: [Entry; 14] = [
    lock!(SetUp: SETTING_UP.),
    lock!(LimitCallback: LIMITS.callback.function.),
    lock!(ThreadCaches: REGISTRY.),
    lock!(HeapTable: HEAPS.),
    lock!(CacheTable: OBJECT_CACHES.),
    lock!(SizeClass: HEAP.),
    lock!(KitQuarantine: KIT.),
    lock!(StatsFile: STATS_FILE.),
    lock!(Recorder: TRACE.recorder.),
    lock!(TraceAsked: TRACE.requested.),
    lock!(TracePath: TRACE.path.),
    lock!(Profile: PROFILE.),
    lock!(ProfilePath: PROFILE_FILE.),
    lock!(ReportsPath: DEBUG_FILE.),
];

const _: () = {
    let mut i = 1;
    while i < LOCKS.len() {
        assert!((LOCKS[i - 1].rank as u8) < LOCKS[i].rank as u8, "in the order of their ranks");
        i += 1;
    }
};

/// `nested`: in a signal handler that interrupted a request.
pub(crate) fn lock_all(nested: bool) {
    LOCKS.iter().for_each(|lock| (lock.hold)(nested));
}

/// Releases all locks after the fork.
///
/// # Safety
/// [`lock_all`] ran in this thread, or in the one that it copies.
pub(crate) unsafe fn release_all() {
    for lock in LOCKS.iter().rev() {
        // SAFETY: by the contract.
        unsafe { (lock.release)() };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
