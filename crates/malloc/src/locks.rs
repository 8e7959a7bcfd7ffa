//! The locks of the process in the order in which a thread may take them.
//!
//! **What.** A thread that holds a lock waits only for locks further down. A fork takes all of them in this order, so that
//! no other thread is inside anything when the process is copied, and gives them up in the opposite order.
//!
//! **Unsafe.** Gives up, after a fork, locks that were taken before it.

use crate::statics::{HEAP, HEAPS, KIT, LIMITS, OBJECT_CACHES, REGISTRY, SETTING_UP, STATS_FILE, TRACE};

/// A lock, or the locks of a part, which has an order among them.
struct Entry {
    hold: fn(nested: bool),
    release: unsafe fn(),
}

/// An entry for what has `hold_for_fork` and `release_after_fork`.
macro_rules! lock {
    ($($lock:tt)+) => {
        Entry {
            hold: |nested| $($lock)+ hold_for_fork(nested),
            // SAFETY: `release_all` says that this thread, or the one that it is a copy of, took it by `hold`.
            release: || unsafe { $($lock)+ release_after_fork() },
        }
    };
}

/// All of them.
const LOCKS: [Entry; 11] = [
    lock!(SETTING_UP.),
    lock!(LIMITS.callback.function.),
    lock!(REGISTRY.),
    lock!(HEAPS.),
    lock!(OBJECT_CACHES.),
    // Size classes → morphs → page heap → huge objects.
    lock!(HEAP.),
    lock!(KIT.),
    lock!(STATS_FILE.),
    // Under the page heap's lock, too.
    lock!(TRACE.recorder.),
    lock!(TRACE.asked.),
    lock!(TRACE.path.),
];

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
