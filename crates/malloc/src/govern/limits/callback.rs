//! The program's callback for a passed soft limit. It runs in a thread that allocates, without our
//! locks; never twice at once.
//!
//! **Unsafe.** Calls the program's function.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_os::{Mutex, Rank, thread};

/// May allocate; must return.
pub type LimitCallback = unsafe extern "C" fn(arg: *mut c_void, limit_bytes: usize, used_bytes: usize);

pub(crate) struct Callback {
    pub(crate) function: Mutex<Option<LimitCallback>>,
    /// Under the lock of `function`.
    argument: AtomicPtr<c_void>,
    caller: AtomicUsize,
}

impl Callback {
    pub(crate) const fn new() -> Self {
        Self {
            function: Mutex::ranked(Rank::LimitCallback, None),
            argument: AtomicPtr::new(null_mut()),
            caller: AtomicUsize::new(0),
        }
    }

    /// A call begun elsewhere may still run.
    ///
    /// # Safety
    /// Any thread that allocates may call it with the argument, until another is set.
    pub(crate) unsafe fn set(&self, function: Option<LimitCallback>, argument: *mut c_void) {
        let mut current = self.function.lock();
        *current = function;
        self.argument.store(argument, Relaxed);
    }

    pub(super) fn call(&self, limit: u64, used: u64) {
        let (function, argument) = {
            let current = self.function.lock();
            (*current, self.argument.load(Relaxed))
        };
        let Some(function) = function else { return };
        // ORDERING: pairs with the Release below: calls see earlier writes.
        if self.caller.compare_exchange(0, thread::own_number(), Ordering::Acquire, Relaxed).is_err() {
            return;
        }
        // SAFETY: by the contract of `set`.
        unsafe { function(argument, limit as usize, used as usize) };
        // ORDERING: pairs with the Acquire above.
        self.caller.store(0, Ordering::Release);
    }

    /// The child has only the calling thread.
    pub(super) fn forked(&self) {
        if self.caller.load(Relaxed) != thread::own_number() {
            self.caller.store(0, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
