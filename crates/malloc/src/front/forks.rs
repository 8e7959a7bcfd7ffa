//! What is done around a fork, so that the child's copy of the heap is whole.
//!
//! **What.** All locks are held while the process is copied; in the child what other threads were at is ended for them.
//!
//! **Unsafe.** Gives up locks that were taken in another function, in the child in the name of the parent's thread.

use super::{CACHES, HEAP, PROCESSOR_CACHES, SETTING_UP, count_threads};
use crate::segment::SEGMENT;
use crate::{background, limits, tls, trace};
use core::sync::atomic::Ordering;
use craton_os::process;

/// Runs before a fork: nobody may be inside when the process is copied.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn before_fork() {
    background::before_fork();
    SETTING_UP.hold_for_fork();
    limits::hold_for_fork();
    CACHES.hold_for_fork();
    HEAP.hold_for_fork();
}

/// Runs after a fork in the parent.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: `before_fork` took them in this thread.
    unsafe { release_after_fork() };
    background::after_fork();
}

/// # Safety
/// `before_fork` ran in the calling thread, or in the one that it is a copy of.
unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe {
        HEAP.release_after_fork();
        CACHES.release_after_fork();
        limits::release_after_fork();
        SETTING_UP.release_after_fork();
    }
}

/// Runs after a fork in the child, whose only thread is a copy of the one that took the locks.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: as above.
    unsafe { release_after_fork() };
    let mut caches = CACHES.lock();
    caches.forked(tls::get());
    count_threads(&caches);
    PROCESSOR_CACHES.forked();
    drop(caches);
    background::forked();
    limits::forked();
    trace::forked();
    SEGMENT.pid.store(process::id().into(), Ordering::Relaxed);
}
