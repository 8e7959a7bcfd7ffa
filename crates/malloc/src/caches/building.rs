//! Which constructors and destructors the calling thread runs.
//!
//! **What.** A constructor that asks its own cache for an object would construct without end. While a thread runs one, its requests go
//! the slow way, which looks here.
//!
//! **State.** A list through the stack, from the innermost call outwards.
//!
//! **Unsafe.** Follows the list, whose entries live as long as their calls.

use crate::tls;
use core::marker::PhantomData;

/// One running call. Taken off the list when it is dropped, also by an unwinding.
pub(super) struct Building {
    cache: usize,
    outer: usize,
    arrays: usize,
    /// The list is one thread's.
    _stays: PhantomData<*mut ()>,
}

impl Building {
    /// A call for a cache, not yet on the list.
    pub(super) fn of(cache: usize) -> Self {
        Self { cache, outer: 0, arrays: 0, _stays: PhantomData }
    }

    /// Runs the call.
    pub(super) fn run<R>(mut self, call: impl FnOnce() -> R) -> R {
        (self.outer, self.arrays) = (tls::building(), tls::arrays());
        tls::set_building(core::ptr::from_ref(&self) as usize);
        tls::set_arrays(1);
        let result = call();
        drop(self);
        result
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        tls::set_building(self.outer);
        tls::set_arrays(self.arrays);
    }
}

/// Whether the calling thread runs any such call.
pub(super) fn any() -> bool {
    tls::building() != 0
}

/// Whether it runs one for this cache.
pub(super) fn is_for(cache: usize) -> bool {
    let mut at = tls::building() as *const Building;
    while !at.is_null() {
        // SAFETY: entries stay until their calls have returned, and are this thread's.
        let building = unsafe { &*at };
        if building.cache == cache {
            return true;
        }
        at = building.outer as *const Building;
    }
    false
}
