//! Private heaps, for C and Rust.
//!
//! **Failure.** Null with `ENOMEM`, or a [`Misuse`] to report; success keeps `errno`.
//!
//! **Unsafe.** Takes objects from callers.

use super::{Options, OwnStats, Refused};
use crate::front;
use crate::govern;
use crate::start::set_up;
use crate::statics::{HEAP, HEAPS};
use craton_heap::{Found, Misuse};
use craton_os::process;

/// Creates a heap; returns its handle, never 0.
pub fn create(options: Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made = if set_up() { HEAPS.create(options) } else { Err(Refused::NoMemory) };
    process::set_errno(saved);
    made
}

/// Destroys a heap; its objects' pointers become invalid.
pub fn destroy(heap: usize) -> Result<(), Misuse> {
    let saved = process::errno();
    let result = HEAPS.over(&HEAP).destroy(heap);
    govern::run_chores_in_free();
    process::set_errno(saved);
    result
}

/// Allocates `size` bytes at a multiple of `align` (a power of two up to 2 MiB), zeroed if `zero`.
pub fn alloc(heap: usize, size: usize, align: usize, zero: bool) -> Result<*mut u8, Misuse> {
    let saved = process::errno();
    let mut object = HEAPS.over(&HEAP).alloc(heap, size, align, zero)?;
    if object.is_null() && govern::make_room() {
        object = HEAPS.over(&HEAP).alloc(heap, size, align, zero)?;
    }
    govern::run_chores();
    Ok(front::with_errno(object, saved))
}

/// Frees an object of the heap; null is ignored.
///
/// # Safety
/// Any pointer; an object of the heap is given up.
pub unsafe fn free(heap: usize, pointer: *mut u8) -> Result<(), Misuse> {
    if pointer.is_null() {
        return HEAPS.check(heap);
    }
    let saved = process::errno();
    let object = HEAPS.over(&HEAP).find_in(heap, pointer)?;
    // SAFETY: the object was classified, and is given up.
    let result = unsafe { HEAPS.over(&HEAP).free(object, pointer) };
    govern::run_chores_in_free();
    process::set_errno(saved);
    result
}

/// Resizes an object in its heap; null makes a new one. After null it is unchanged.
///
/// # Safety
/// As [`free`]; after a non-null result other than the pointer the old object is given up.
pub unsafe fn realloc(heap: usize, pointer: *mut u8, size: usize) -> Result<*mut u8, Misuse> {
    if pointer.is_null() {
        return alloc(heap, size, 1, false);
    }
    HEAPS.over(&HEAP).find_in(heap, pointer)?;
    // SAFETY: by the contract; the object's own heap serves it.
    unsafe { front::realloc(pointer, size) }
}

/// Returns the usable bytes of an object of the heap; 0 for null.
pub fn usable_size(heap: usize, pointer: *mut u8) -> Result<usize, Misuse> {
    if pointer.is_null() {
        return HEAPS.check(heap).map(|()| 0);
    }
    HEAPS.over(&HEAP).find_in(heap, pointer).map(|o| o.bytes)
}

pub fn stats(heap: usize) -> Result<OwnStats, Misuse> {
    HEAPS.stats(heap)
}

/// Calls `each` with each heap by number, the library's included. `each` must not use a heap.
pub fn each(each: impl FnMut(OwnStats)) {
    HEAPS.each(each);
}

/// Returns a class's statistics, by the heap's number in its statistics.
pub fn class_stats(id: u64, class: usize) -> Option<craton_slab::SlabStats> {
    HEAPS.class_stats(id as u16, class)
}

/// Whether the pointer is an object of any private heap.
///
/// # Safety
/// No other thread frees it meanwhile.
pub unsafe fn is_owned(pointer: *mut u8) -> bool {
    !pointer.is_null() && matches!(front::find(pointer), Some(Found::Owned(_)))
}

#[cfg(all(test, not(loom)))]
mod tests;
