//! The heap around a fork, and around a clone that shares it.
//!
//! **What.** A fork copies the process while nobody is inside. A task that is made past the C library may have the memory and the thread
//! pointer of the one that made it, as `vfork` makes it: then one must not use what the other has.
//!
//! **Unsafe.** Is called by the C library, and holds locks across the fork.

mod locks;

use crate::govern;
use crate::here::Here;
use crate::statics::{BACKGROUND, KIT, PROCESSOR_CACHES, REGISTRY, SEGMENT, TRACE};
use crate::thread::leave::{count_threads, give_cache_up};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::thread_cache::ThreadCache;
use craton_os::process::id;
use craton_os::trust_lock_order;

/// Runs before a fork: no thread may be inside when the process is copied, and the library's own must not be missed.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn before_fork() {
    let nested = nested::is_nested();
    BACKGROUND.life.hold();
    if nested {
        // Our thread may wait for a lock that the calling thread holds: it is not waited for.
        nested::say("fork");
    } else {
        BACKGROUND.stop(&Here);
    }
    locks::hold_all(nested);
}

/// Runs after a fork in the parent.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_parent() {
    // SAFETY: `before_fork` took them in this thread.
    unsafe { locks::release_all() };
    BACKGROUND.life.release();
}

/// Runs after a fork in the child, whose only thread is a copy of the one that took the locks.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_child() {
    // SAFETY: `before_fork` took the locks in the thread that this is a copy of.
    unsafe {
        let caches = REGISTRY.held_for_fork();
        caches.forked(tls::get());
        count_threads(caches);
        PROCESSOR_CACHES.forked();
        KIT.forked();
        locks::release_all();
    }
    tls::forget_number();
    govern::forked();
    TRACE.forked();
    SEGMENT.pid.store(id().into(), Relaxed);
}

/// Before the calling thread makes a task that has its memory and its thread pointer: neither uses a processor's cache from now on, since the
/// kernel restarts the sequences of one of them only; nor a cache of its own, if they are to run at the same time. Returns what
/// [`after_clone`] needs.
pub fn before_clone(at_the_same_time: bool) -> usize {
    BACKGROUND.life.hold();
    trust_lock_order();
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
    BACKGROUND.life.release();
}
