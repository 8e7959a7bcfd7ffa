//! Objects that change their size.
//!
//! **Unsafe.** Takes objects from callers, and copies them.

use super::apart::realloc_in_handler;
use super::{MAX_SIZE, free, is_ready, malloc, no_memory, try_free, with_errno};
use crate::statics::{HEAP, HEAPS};
use crate::thread::{nested, tls};
use crate::{debug, govern, sampling, size_class};
use craton_heap::thread_cache::ThreadCache;
use craton_heap::{Found, Misuse, beyond::small_stays};
use craton_os::process::{errno, set_errno};
use craton_os::touched;

/// From this size on only what was touched is copied: to ask costs as much as copying 20 KiB.
const PARTS_MIN: usize = 256 << 10;

/// Resizes an object, keeping its contents; null makes a new one. Unchanged on failure.
///
/// # Safety
/// As [`free`]; a result other than the pointer means that the old object is given up.
pub unsafe fn realloc(pointer: *mut u8, size: usize) -> Result<*mut u8, Misuse> {
    if pointer.is_null() {
        return Ok(malloc(size));
    }
    // SAFETY: as in `malloc`.
    if let Some((class, _)) = unsafe { ThreadCache::recognise(tls::get(), pointer) } {
        // SAFETY: by the contract; the object is one of the class.
        return unsafe { realloc_small(pointer, class, size) };
    }
    if !is_ready() {
        return Err(Misuse::Foreign);
    }
    if let Some(old) = debug::size_to_move(pointer) {
        let new = if size > MAX_SIZE { no_memory() } else { malloc(size) };
        if !new.is_null() {
            // SAFETY: by the contract; both have at least that many bytes.
            unsafe {
                new.copy_from_nonoverlapping(pointer, old.min(size));
                debug::free_moved(pointer);
            }
        }
        return Ok(new);
    }
    if nested::is_nested() || nested::size_of(pointer).is_some() {
        // SAFETY: by the contract.
        return unsafe { realloc_in_handler(pointer, size) };
    }
    let found = nested::within(|| HEAP.find(pointer));
    let old = found.usable()?;
    if size > MAX_SIZE {
        return Ok(no_memory());
    }
    if let Found::Small { class } = found {
        // SAFETY: by the contract; the object is one of the class.
        return unsafe { realloc_small(pointer, class, size) };
    }
    let saved = errno();
    let resized = nested::within(|| match found {
        Found::Owned(object) => HEAPS.over(&HEAP).resize(object, size).then_some(pointer),
        _ => HEAP.resize(pointer, found, size),
    });
    if let Some(same) = resized {
        if matches!(found, Found::Large { .. } | Found::Huge(_)) {
            sampling::resized(pointer, same, size);
        }
        govern::run_chores();
        return Ok(with_errno(same, saved));
    }
    set_errno(saved);
    let new = match found {
        Found::Owned(object) => with_errno(HEAPS.over(&HEAP).alloc_beside(object, size), saved),
        _ => malloc(size),
    };
    let bytes = old.min(size);
    if bytes >= PARTS_MIN && !new.is_null() {
        // SAFETY: by the contract; both objects have at least that many bytes.
        unsafe {
            touched::copy(pointer, new, bytes);
            free(pointer)?;
        }
        return Ok(new);
    }
    // SAFETY: as above.
    unsafe { move_to(new, pointer, bytes) }
}

/// Resizes an object of a class. Takes no lock itself, so a signal handler may call it.
///
/// # Safety
/// As [`realloc`]; the object is a live, checked one of the class.
unsafe fn realloc_small(pointer: *mut u8, class: usize, size: usize) -> Result<*mut u8, Misuse> {
    if small_stays(class, size) {
        return Ok(pointer);
    }
    // SAFETY: by the contract; both objects have at least that many bytes.
    unsafe { move_to(malloc(size), pointer, size_class::size_of_class(class).min(size)) }
}

/// Copies `bytes` to a new object, which may be null, and frees the old one.
///
/// # Safety
/// The objects differ and have `bytes` bytes; the old one is given up if `new` is not null.
#[inline(always)]
unsafe fn move_to(new: *mut u8, old: *mut u8, bytes: usize) -> Result<*mut u8, Misuse> {
    if !new.is_null() {
        // SAFETY: by the contract.
        unsafe {
            new.copy_from_nonoverlapping(old, bytes);
            if !try_free(old) {
                free(old)?;
            }
        }
    }
    Ok(new)
}
