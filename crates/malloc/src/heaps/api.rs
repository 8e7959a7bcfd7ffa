//! Private heaps, for C and Rust; success keeps `errno`. Null means `ENOMEM`.
//!
//! **Unsafe.** Takes objects from callers.

use super::{Options, OwnStats, Refused};
use crate::front;
use crate::govern;
use crate::start::set_up;
use crate::statics::{HEAP, HEAPS};
use craton_heap::{Found, Misuse};
use craton_os::process;

/// Returns a handle, never 0.
pub fn create(options: Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made = if set_up() { HEAPS.create(options) } else { Err(Refused::NoMemory) };
    process::set_errno(saved);
    made
}

/// Objects' pointers become invalid.
pub fn destroy(heap: usize) -> Result<(), Misuse> {
    let saved = process::errno();
    let result = HEAPS.over(&HEAP).destroy(heap);
    govern::run_chores_in_free();
    process::set_errno(saved);
    result
}

/// `align` is a power of two up to 2 MiB.
pub fn alloc(heap: usize, size: usize, align: usize, zero: bool) -> Result<*mut u8, Misuse> {
    let saved = process::errno();
    let mut object = HEAPS.over(&HEAP).alloc(heap, size, align, zero)?;
    if object.is_null() && govern::make_room() {
        object = HEAPS.over(&HEAP).alloc(heap, size, align, zero)?;
    }
    govern::run_chores();
    Ok(front::with_errno(object, saved))
}

/// Null is ignored.
///
/// # Safety
/// An object of the heap is given up.
pub unsafe fn free(heap: usize, pointer: *mut u8) -> Result<(), Misuse> {
    if pointer.is_null() {
        return HEAPS.check(heap);
    }
    let saved = process::errno();
    let object = HEAPS.over(&HEAP).find_in(heap, pointer)?;
    // SAFETY: classified, and given up.
    let result = unsafe { HEAPS.over(&HEAP).free(object, pointer) };
    govern::run_chores_in_free();
    process::set_errno(saved);
    result
}

/// Null makes a new object. After null the old one is unchanged.
///
/// # Safety
/// As [`free`]; a non-null result other than the pointer gives the old object up.
pub unsafe fn realloc(heap: usize, pointer: *mut u8, size: usize) -> Result<*mut u8, Misuse> {
    if pointer.is_null() {
        return alloc(heap, size, 1, false);
    }
    HEAPS.over(&HEAP).find_in(heap, pointer)?;
    // SAFETY: by the contract; the object's heap serves it.
    unsafe { front::realloc(pointer, size) }
}

/// In bytes; 0 for null.
pub fn usable_size(heap: usize, pointer: *mut u8) -> Result<usize, Misuse> {
    if pointer.is_null() {
        return HEAPS.check(heap).map(|()| 0);
    }
    HEAPS.over(&HEAP).find_in(heap, pointer).map(|o| o.bytes)
}

pub fn stats(heap: usize) -> Result<OwnStats, Misuse> {
    HEAPS.stats(heap)
}

/// Includes the library's heaps. `each` must not use a heap.
pub fn each(each: impl FnMut(OwnStats)) {
    HEAPS.each(each);
}

/// `id` is the number in the heap's statistics.
pub fn class_stats(id: u64, class: usize) -> Option<craton_slab::SlabStats> {
    HEAPS.class_stats(id as u16, class)
}

/// # Safety
/// No other thread frees it meanwhile.
pub unsafe fn is_owned(pointer: *mut u8) -> bool {
    !pointer.is_null() && matches!(front::find(pointer), Some(Found::Owned(_)))
}

#[cfg(all(test, not(loom)))]
mod tests;
