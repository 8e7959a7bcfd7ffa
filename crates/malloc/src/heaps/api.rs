//! Heaps with names in the process's heap: what C and Rust call.
//!
//! **Failure.** Null with `errno` `ENOMEM`, or a [`Misuse`] for the caller to report; `errno` is
//! left alone on success.
//!
//! **Unsafe.** Takes objects from callers.

use super::{Options, OwnStats, Refused};
use crate::front;
use crate::govern;
use crate::start::set_up;
use crate::statics::{HEAP, HEAPS};
use craton_heap::{Found, Misuse};
use craton_os::process;

/// Makes a heap; returns its handle, which is never 0.
pub fn create(options: Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made = if set_up() { HEAPS.create(options) } else { Err(Refused::NoMemory) };
    process::set_errno(saved);
    made
}

/// Destroys a heap with all its objects: no pointer into it may be used any more.
pub fn destroy(heap: usize) -> Result<(), Misuse> {
    let saved = process::errno();
    let result = HEAPS.over(&HEAP).destroy(heap);
    govern::poke_in_free();
    process::set_errno(saved);
    result
}

/// `size` bytes at a multiple of `align` (a power of two up to 2 MiB), which read as zeros if
/// `zero`.
pub fn alloc(heap: usize, size: usize, align: usize, zero: bool) -> Result<*mut u8, Misuse> {
    let saved = process::errno();
    let mut object = HEAPS.over(&HEAP).alloc(heap, size, align, zero)?;
    if object.is_null() && govern::make_room() {
        object = HEAPS.over(&HEAP).alloc(heap, size, align, zero)?;
    }
    govern::poke();
    Ok(front::with_errno(object, saved))
}

/// Frees an object of the heap; null is nothing to free.
///
/// # Safety
/// Any pointer may be given; if it is an object of the heap the caller gives it up.
pub unsafe fn free(heap: usize, pointer: *mut u8) -> Result<(), Misuse> {
    if pointer.is_null() {
        return HEAPS.check(heap);
    }
    let saved = process::errno();
    let object = HEAPS.over(&HEAP).find_in(heap, pointer)?;
    // SAFETY: the object was looked up, and the caller gives it up.
    let result = unsafe { HEAPS.over(&HEAP).free(object, pointer) };
    govern::poke_in_free();
    process::set_errno(saved);
    result
}

/// Changes an object's size, in the same heap, keeping its contents; null makes a new one. Null
/// means no memory: the object is as it was.
///
/// # Safety
/// As [`free`]; if the result is another pointer than null, the old one is given up.
pub unsafe fn realloc(heap: usize, pointer: *mut u8, size: usize) -> Result<*mut u8, Misuse> {
    if pointer.is_null() {
        return alloc(heap, size, 1, false);
    }
    HEAPS.over(&HEAP).find_in(heap, pointer)?;
    // SAFETY: by the contract. It allocates in the object's own heap.
    unsafe { front::realloc(pointer, size) }
}

/// Bytes that may be used behind an object of the heap; 0 behind null.
pub fn usable_size(heap: usize, pointer: *mut u8) -> Result<usize, Misuse> {
    if pointer.is_null() {
        return HEAPS.check(heap).map(|()| 0);
    }
    HEAPS.over(&HEAP).find_in(heap, pointer).map(|o| o.bytes)
}

/// Counts of a heap.
pub fn stats(heap: usize) -> Result<OwnStats, Misuse> {
    HEAPS.stats(heap)
}

/// Counts of every heap, the library's among them, by number. No heap may be used in `each`.
pub fn each(each: impl FnMut(OwnStats)) {
    HEAPS.each(each);
}

/// Counts of one class of a heap, by the number that its statistics name.
pub fn class_stats(id: u64, class: usize) -> Option<craton_slab::SlabStats> {
    HEAPS.class_stats(id as u16, class)
}

/// Whether a pointer is an object of any heap with a name.
///
/// # Safety
/// If it is an object, nobody frees it meanwhile.
pub unsafe fn is_owned(pointer: *mut u8) -> bool {
    !pointer.is_null() && matches!(front::find(pointer), Some(Found::Owned(_)))
}

#[cfg(all(test, not(loom)))]
mod tests;
