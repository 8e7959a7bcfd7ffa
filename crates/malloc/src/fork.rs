//! The heap around a fork, and around a clone that shares it.
//!
//! **What.** A fork copies the process while no thread holds a lock. A task made past the C library
//! may share its maker's memory and thread pointer (`vfork`): the two must not use the same caches.
//!
//! **Unsafe.** Is called by the C library, and holds locks across the fork.

mod locks;

use crate::govern;
use crate::here::Here;
use crate::statics::{BACKGROUND, FORKS, KIT, PROCESSOR_CACHES, REGISTRY, SEGMENT, TRACE};
use crate::thread::leave::{count_threads, return_cache};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_heap::thread_cache::ThreadCache;
use craton_os::process::id;
use craton_os::trust_lock_order;

/// Before a fork: takes all locks and stops the library's thread.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn before_fork() {
    let nested = nested::is_nested();
    BACKGROUND.life.hold();
    if nested {
        // The library's thread may wait for a lock of ours: do not join it.
        nested::say("fork");
    } else {
        BACKGROUND.stop(&Here);
    }
    locks::hold_all(nested);
    FORKS.fetch_add(1, Relaxed);
}

/// After a fork, in the parent.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_parent() {
    FORKS.fetch_sub(1, Relaxed);
    // SAFETY: `before_fork` took them in this thread.
    unsafe { locks::release_all() };
    BACKGROUND.life.release();
    govern::forked_in_parent();
}

/// After a fork, in the child, whose only thread copies the one that took the locks.
///
/// # Safety
/// Called by the C library only.
pub(crate) unsafe extern "C" fn after_fork_in_child() {
    let left = FORKS.fetch_sub(1, Relaxed) - 1;
    // SAFETY: `before_fork` took the locks in the thread that this is a copy of.
    unsafe {
        let caches = REGISTRY.held_for_fork();
        caches.forked(tls::get());
        count_threads(caches);
        PROCESSOR_CACHES.forked();
        KIT.forked();
        TRACE.forked(nested::is_nested());
        locks::release_all();
    }
    tls::clear_number();
    govern::forked(left);
    SEGMENT.pid.store(id().into(), Relaxed);
}

/// Before the calling thread makes a task with its memory and thread pointer. Neither task uses
/// per-CPU caches from now on, since the kernel restarts only one's sequences; nor a thread cache
/// if they run concurrently. Returns the argument of [`after_clone`].
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

/// After that, in the maker: restores the state if the task has ended or was never made.
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
