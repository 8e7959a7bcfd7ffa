//! The heap around a fork, and around a clone that shares it.
//!
//! **What.** A fork copies the process while nobody is inside. A task that is made past the C library may have the memory and the thread
//! pointer of the one that made it, as `vfork` makes it: then one must not use what the other has.
//!
//! **Unsafe.** Is called by the C library, and holds locks across the fork.

use super::{CACHES, HEAP, HEAPS, OBJECT_CACHES, PROCESSOR_CACHES, SETTING_UP, count_threads, give_cache_up};
use crate::cpu_cache::thread::ThreadCache;
use crate::segment::SEGMENT;
use crate::{background, debug, limits, nested, options, tls, trace};
use core::sync::atomic::Ordering;
use craton_os::process;

/// Runs before a fork: nobody may be inside when the process is copied.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn before_fork() {
    let nested = nested::is_nested();
    if nested {
        // Our thread may wait for a lock that the calling thread holds.
        nested::say("fork");
        background::hold();
    } else {
        background::before_fork();
    }
    SETTING_UP.hold_for_fork(nested);
    limits::hold_for_fork(nested);
    CACHES.hold_for_fork(nested);
    HEAPS.hold_for_fork(nested);
    OBJECT_CACHES.hold_for_fork(nested);
    HEAP.hold_for_fork(nested);
    debug::hold_for_fork(nested);
    options::hold_for_fork(nested);
    trace::hold_for_fork(nested);
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
        trace::release_after_fork();
        options::release_after_fork();
        debug::release_after_fork();
        HEAP.release_after_fork();
        OBJECT_CACHES.release_after_fork();
        HEAPS.release_after_fork();
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
    // SAFETY: `before_fork` took the locks in the thread that this is a copy of.
    unsafe {
        let caches = CACHES.held_for_fork();
        caches.forked(tls::get());
        count_threads(caches);
        PROCESSOR_CACHES.forked();
        debug::forked();
        release_after_fork();
    }
    tls::forget_number();
    background::forked();
    limits::forked();
    trace::forked();
    SEGMENT.pid.store(process::id().into(), Ordering::Relaxed);
}

/// Before the calling thread makes a task that has its memory and its thread pointer: neither uses a processor's cache from now on, since the
/// kernel restarts the sequences of one of them only; nor a cache of its own, if they are to run at the same time. Returns what
/// [`after_clone`] needs.
pub fn before_clone(at_the_same_time: bool) -> usize {
    background::hold();
    let cache = tls::get();
    tls::set_arrays(1);
    tls::share_number();
    if at_the_same_time {
        give_cache_up(tls::alone());
    }
    if tls::is_none(tls::get()) {
        tls::set(tls::alone());
    }
    cache as usize
}

/// After that, in the thread that made it: what [`before_clone`] returned holds again, if the task is no more there, or was never.
pub fn after_clone(before: usize, is_over: bool) {
    let before = before as *mut ThreadCache;
    if is_over {
        tls::set_arrays(0);
    }
    // Another task may go on sharing the thread's words.
    if is_over && before != tls::alone() {
        tls::forget_number();
    }
    if is_over && tls::is_none(before) {
        tls::set(before);
    }
    background::release();
}
