//! The heap around a fork, when no other thread may hold a lock, and around a clone that shares
//! memory and thread pointer (`vfork`).
//!
//! **Unsafe.** The C library calls it; holds locks across the fork.

mod locks;

use crate::govern;
use crate::here::Here;
use crate::sampling;
use crate::statics::{BACKGROUND, FORKS, KIT, PROCESSOR_CACHES, REGISTRY, SEGMENT, SHARED, TRACE};
use crate::thread::leave::{count_threads, return_cache};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::thread_cache::ThreadCache;
use craton_os::process::id;
use craton_os::trust_lock_order;

/// # Safety
/// For the C library only.
pub(crate) unsafe extern "C" fn before_fork() {
    let nested = nested::is_nested();
    BACKGROUND.life.hold();
    if nested {
        // The library's thread may wait for our lock: do not join it.
        nested::say("fork");
    } else {
        BACKGROUND.stop(&Here);
    }
    locks::lock_all(nested);
    FORKS.fetch_add(1, Relaxed);
}

/// # Safety
/// For the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_parent() {
    FORKS.fetch_sub(1, Relaxed);
    // SAFETY: this thread took them in `before_fork`.
    unsafe { locks::release_all() };
    BACKGROUND.life.release();
    govern::forked_in_parent();
}

/// # Safety
/// For the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_child() {
    let left = FORKS.fetch_sub(1, Relaxed) - 1;
    // SAFETY: the thread that this copies took the locks.
    let records = unsafe { TRACE.forked(nested::is_nested()) };
    SHARED.forked(&SEGMENT, records);
    // SAFETY: as above.
    unsafe {
        let caches = REGISTRY.held_for_fork();
        caches.forked(tls::get());
        count_threads(caches);
        PROCESSOR_CACHES.forked();
        KIT.forked();
        locks::release_all();
    }
    tls::clear_number();
    sampling::forked();
    govern::forked(left);
    SEGMENT.pid.store(id().into(), Relaxed);
}

/// Call before the thread makes a task with its memory and thread pointer. Neither may then use
/// per-CPU caches, since the kernel restarts only one's sequences, nor, if they run at once, a
/// thread cache. Returns the argument of [`after_clone`].
pub fn before_clone(at_the_same_time: bool) -> usize {
    BACKGROUND.life.hold();
    trust_lock_order();
    let cache = tls::get();
    tls::set_arrays(1);
    tls::share_number();
    if at_the_same_time {
        return_cache(tls::alone());
    }
    if tls::is_none(tls::get()) {
        tls::set(tls::alone());
    }
    cache as usize
}

/// `is_over`: the task has ended or was never made.
pub fn after_clone(before: usize, is_over: bool) {
    let before = before as *mut ThreadCache;
    if is_over {
        tls::set_arrays(0);
    }
    // Another task may still share the thread's words.
    if is_over && before != tls::alone() {
        tls::clear_number();
    }
    if is_over && tls::is_none(before) {
        tls::set(before);
    }
    BACKGROUND.life.release();
}
