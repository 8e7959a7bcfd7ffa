//! Constructors and destructors that the thread runs, as a list on the stack: one that allocated
//! from its own cache would recurse without end.
//!
//! **Unsafe.** Follows the list, whose entries live as long as their calls.

use crate::process::{Process, Words};
use core::marker::PhantomData;

/// Leaves the list when dropped, also by an unwinding.
pub(super) struct Building<P: Process> {
    cache: usize,
    outer: Words,
    _stays: PhantomData<*mut P>,
}

impl<P: Process> Building<P> {
    pub(super) fn run<R>(cache: usize, call: impl FnOnce() -> R) -> R {
        let this = Self { cache, outer: P::words(), _stays: PhantomData };
        P::set_words(Words { arrays: Words::NONE, building: core::ptr::from_ref(&this) as usize });
        let result = call();
        drop(this);
        result
    }

    pub(super) fn any() -> bool {
        P::words().building != 0
    }

    pub(super) fn is_for(cache: usize) -> bool {
        let mut at = P::words().building as *const Self;
        while !at.is_null() {
            // SAFETY: their calls have not returned.
            let building = unsafe { &*at };
            if building.cache == cache {
                return true;
            }
            at = building.outer.building as *const Self;
        }
        false
    }
}

impl<P: Process> Drop for Building<P> {
    fn drop(&mut self) {
        P::set_words(self.outer);
    }
}
