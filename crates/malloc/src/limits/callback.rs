//! What the program wants to be called when its soft limit is passed.
//!
//! **Threads.** Called in a thread of the program that asks for memory, with no lock of ours held, in one thread at a time, and never
//! from within itself.
//!
//! **Unsafe.** Calls the program's function.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::{Mutex, thread};

/// A function to be called with its argument, the soft limit and the bytes in use. It may allocate and free; it must return.
pub type LimitCallback = unsafe extern "C" fn(arg: *mut c_void, limit_bytes: usize, used_bytes: usize);

static CALLBACK: Mutex<Option<LimitCallback>> = Mutex::new(None);
/// Changed under the lock of `CALLBACK`.
static ARGUMENT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The thread that is in the callback, or 0.
static CALLER: AtomicUsize = AtomicUsize::new(0);

/// Sets what is called when the soft limit is passed and releasing memory did not help; `None` for nothing. A call that has begun in
/// another thread may still go on afterwards.
///
/// # Safety
/// The function may be called with the argument by any thread that allocates, until another one is set.
pub unsafe fn set_callback(callback: Option<LimitCallback>, argument: *mut c_void) {
    let mut current = CALLBACK.lock();
    *current = callback;
    ARGUMENT.store(argument, Relaxed);
}

/// Calls the program, unless it is in its callback already.
pub(super) fn call(limit: u64, used: u64) {
    let (callback, argument) = {
        let current = CALLBACK.lock();
        (*current, ARGUMENT.load(Relaxed))
    };
    let Some(callback) = callback else { return };
    // ORDERING: Acquire pairs with the Release below: what one call wrote, the next one sees.
    if CALLER.compare_exchange(0, thread::own_number(), Ordering::Acquire, Relaxed).is_err() {
        return;
    }
    // SAFETY: by the contract of `set_callback`.
    unsafe { callback(argument, limit as usize, used as usize) };
    // ORDERING: Release pairs with the Acquire above.
    CALLER.store(0, Ordering::Release);
}

pub(super) fn hold_for_fork(nested: bool) {
    CALLBACK.hold_for_fork(nested);
}

/// # Safety
/// As [`Mutex::release_after_fork`].
pub(super) unsafe fn release_after_fork() {
    // SAFETY: by the contract.
    unsafe { CALLBACK.release_after_fork() };
}

/// In a forked child only the calling thread can still be in the callback.
pub(super) fn forked() {
    if CALLER.load(Relaxed) != thread::own_number() {
        CALLER.store(0, Relaxed);
    }
}
