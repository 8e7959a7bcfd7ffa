//! Craton for Rust programs.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: craton::Craton = craton::Craton;
//!
//! fn main() {
//!     let numbers: Vec<u64> = (0..1000).collect();
//!     assert_eq!(numbers.iter().sum::<u64>(), 499_500);
//! }
//! ```
//!
//! **What.** [`Craton`] is a [`GlobalAlloc`] over the process's heap, shared with the C functions
//! of `libcraton.so`; `CRATON_OPTIONS` sets options, limits among them.
//!
//! **Failure.** Freeing a pointer that was never allocated ends the process with its address.
//!
//! **Unsafe.** `GlobalAlloc` is an unsafe trait.
#![no_std]
#![warn(missing_docs)]

mod cache;
mod error;
mod heap;
mod more;

pub use cache::{CacheBox, CacheStats, ObjectCache, ObjectCacheOptions};
pub use error::Error;
pub use heap::{Heap, HeapBox, HeapOptions, HeapStats, Place};
pub use more::{Hint, Stats};

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;
use craton_malloc::front::{self, family::TRUSTED};

pub use craton_malloc::govern::actions as background_actions;
pub use craton_malloc::govern::limits::LimitCallback;
pub use craton_malloc::govern::set_callback as set_limit_callback;

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Craton;

const ALIGN: usize = 16;

// SAFETY: objects fit their layout, do not overlap, and stay until freed; nothing unwinds.
unsafe impl GlobalAlloc for Craton {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGN {
            front::malloc_by::<{ TRUSTED }>(layout.size())
        } else {
            front::aligned_by::<{ TRUSTED }>(layout.align(), layout.size())
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: given up; `realloc` keeps small objects' layouts true.
        unsafe {
            let done = if layout.align() <= ALIGN && layout.size() <= front::MAX_TRUSTED {
                front::try_free_trusted(pointer, layout.size())
            } else {
                front::try_free(pointer)
            };
            if !done {
                free_slowly(pointer);
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGN {
            return front::calloc_by::<{ TRUSTED }>(layout.size());
        }
        let object = front::aligned_by::<{ TRUSTED }>(layout.align(), layout.size());
        if !object.is_null() {
            // SAFETY: of this size, with no other user yet.
            unsafe { object.write_bytes(0, layout.size()) };
        }
        object
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGN && size <= front::MAX_TRUSTED {
            if front::serves(pointer, layout.size(), size) {
                return pointer;
            }
            // It often shrinks in place, in its old class.
        } else if layout.align() <= ALIGN {
            // SAFETY: given up if the new pointer is not null.
            return match unsafe { front::realloc(pointer, size) } {
                Ok(new) => new,
                Err(misuse) => front::die("realloc", pointer, misuse),
            };
        }
        // The heap's realloc keeps no larger alignment.
        let new = front::aligned_by::<{ TRUSTED }>(layout.align(), size);
        if new.is_null() {
            return null_mut();
        }
        // SAFETY: distinct objects of these bytes; the old pointer is given up.
        unsafe {
            new.copy_from_nonoverlapping(pointer, layout.size().min(size));
            self.dealloc(pointer, layout);
        }
        new
    }
}

/// # Safety
/// As [`GlobalAlloc::dealloc`].
#[cold]
#[inline(never)]
unsafe fn free_slowly(pointer: *mut u8) {
    craton_malloc::debug::record_trust();
    // SAFETY: by the contract.
    if let Err(misuse) = unsafe { front::free(pointer) } {
        front::die("dealloc", pointer, misuse);
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
mod guide {}
