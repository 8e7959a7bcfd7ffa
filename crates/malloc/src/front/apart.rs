//! Requests of signal handlers that interrupted a request, served without a lock ([`crate::thread::nested`]).
//!
//! **Unsafe.** Takes objects from callers.

use super::{MAX_SIZE, find, free, malloc, no_memory};
use crate::govern::background::Chore;
use crate::statics::{APART, BACKGROUND, HEAP};
use crate::thread::nested;
use craton_heap::Misuse;
use craton_heap::size_class;

/// An object of a class for a signal handler, which may be at every alignment that the class's objects have.
#[cold]
pub(super) fn malloc_apart_class(class: usize) -> *mut u8 {
    let size = size_class::size_of_class(class);
    malloc_apart(size, 1 << size.trailing_zeros())
}

#[cold]
pub(super) fn malloc_apart(size: usize, align: usize) -> *mut u8 {
    nested::say("malloc");
    let object = APART.serve(size, align);
    if object.is_null() { no_memory() } else { object }
}

/// Frees for a signal handler: what can be recognised without a lock is freed later, the rest stays.
///
/// # Safety
/// As [`free`].
#[cold]
pub(super) unsafe fn free_apart(pointer: *mut u8) {
    nested::say("free");
    if HEAP.recognise(pointer).is_some() {
        // SAFETY: it is an object of a class that is out, and given up.
        unsafe { APART.free_later(pointer) };
        BACKGROUND.want(Chore::Later);
    }
}

/// Frees what signal handlers could not.
pub(crate) fn free_what_waits() {
    let mut object = APART.take_later();
    while !object.is_null() {
        // SAFETY: an object that a handler gave up, linked to the next; nobody else has it.
        unsafe {
            let next = object.cast::<*mut u8>().read();
            let _ = free(object);
            object = next;
        }
    }
}

/// Changes the size of an object that is apart, or for a signal handler: what it becomes is another one.
///
/// # Safety
/// As [`realloc`].
#[cold]
pub(super) unsafe fn realloc_apart(pointer: *mut u8, size: usize) -> Result<*mut u8, Misuse> {
    let old = match nested::size_of(pointer) {
        Some(size) => size,
        None => match find(pointer) {
            Some(found) => found.usable()?,
            None => return Ok(no_memory()),
        },
    };
    let new = if size > MAX_SIZE { no_memory() } else { malloc(size) };
    if !new.is_null() {
        // SAFETY: both objects hold so many bytes, and they are different ones.
        unsafe {
            new.copy_from_nonoverlapping(pointer, old.min(size));
            free(pointer)?;
        }
    }
    Ok(new)
}
