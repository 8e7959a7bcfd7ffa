//! Lock-free requests of signal handlers that interrupted a request ([`crate::thread::nested`]).
//!
//! **Unsafe.** Takes objects from callers.

use super::{MAX_SIZE, find, free, malloc, no_memory};
use crate::govern::background::Chore;
use crate::statics::{APART, BACKGROUND, HEAP};
use crate::thread::nested;
use craton_heap::Misuse;
use craton_heap::size_class;

#[cold]
pub(super) fn malloc_in_handler_class(class: usize) -> *mut u8 {
    let size = size_class::size_of_class(class);
    malloc_in_handler(size, 1 << size.trailing_zeros())
}

#[cold]
pub(super) fn malloc_in_handler(size: usize, align: usize) -> *mut u8 {
    nested::say("malloc");
    let object = APART.serve(size, align);
    if object.is_null() { no_memory() } else { object }
}

/// Defers objects recognised without a lock; the rest stays allocated.
///
/// # Safety
/// As [`free`].
#[cold]
pub(super) unsafe fn free_in_handler(pointer: *mut u8) {
    nested::say("free");
    if let Some(class) = HEAP.recognise(pointer) {
        // SAFETY: a live object of a class, given up.
        unsafe {
            HEAP.set_waiting(class, pointer);
            APART.free_later(pointer);
        }
        BACKGROUND.want(Chore::Later);
    }
}

pub(crate) fn free_what_waits() {
    let mut object = APART.pop_deferred();
    while !object.is_null() {
        HEAP.end_waiting(object);
        // SAFETY: a handler gave it up, linked to the next; no other list has it.
        unsafe {
            let next = object.cast::<*mut u8>().read();
            let _ = free(object);
            object = next;
        }
    }
}

/// # Safety
/// As [`realloc`].
#[cold]
pub(super) unsafe fn realloc_in_handler(pointer: *mut u8, size: usize) -> Result<*mut u8, Misuse> {
    let old = match nested::size_of(pointer) {
        Some(size) => size,
        None => match find(pointer) {
            Some(found) => found.usable()?,
            None => return Ok(no_memory()),
        },
    };
    let new = if size > MAX_SIZE { no_memory() } else { malloc(size) };
    if !new.is_null() {
        // SAFETY: two objects of at least that many bytes.
        unsafe {
            new.copy_from_nonoverlapping(pointer, old.min(size));
            free(pointer)?;
        }
    }
    Ok(new)
}
