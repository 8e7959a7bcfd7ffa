//! Object caches of the process: what C, C++ and Rust call.
//!
//! **Failure.** A [`Fault`] or a [`Misuse`] for the caller to report; `errno` is left as it was.
//!
//! **Cost.** An object from the processor's array: 30 instructions; one that goes there: 43; 40 and 46 where marks lie in pages' entries.
//!
//! **Unsafe.** Takes objects from callers, and marks them.

use super::pages::Entry;
use super::paths::Fault;
use super::slot::{Slot, marks_elsewhere, marks_in_entries};
use super::{ALIGN, CacheStats, Options, Refused, arrays};
use crate::front::OBJECT_CACHES;
use crate::front::{HEAP, PROCESSOR_CACHES, set_up};
use crate::route::Misuse;
use crate::{background, debug, nested, tls};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_os::process;

/// What a call on a cache that is not the fast path does about `errno` and the heap's own work.
fn slowly<R>(cache: usize, call: impl FnOnce() -> R) -> R {
    let saved = process::errno();
    let result = call();
    OBJECT_CACHES.heed(&HEAP, cache);
    background::poke();
    process::set_errno(saved);
    result
}

/// Makes a cache; returns its handle, which is never 0.
pub fn create(options: &Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made = if set_up() { nested::within(|| OBJECT_CACHES.create(&HEAP, options)) } else { Err(Refused::NoMemory) };
    process::set_errno(saved);
    made
}

/// An object of a cache, in its constructed state.
#[inline]
pub fn alloc(cache: usize) -> Result<*mut u8, Fault> {
    let object = alloc_quick(cache);
    if object.is_null() { alloc_slowly(cache, None) } else { Ok(object) }
}

/// As [`alloc`]; when there is no memory or a limit is reached, waits for an object that comes back, for so many nanoseconds at most.
pub fn alloc_wait(cache: usize, ns: u64) -> Result<*mut u8, Fault> {
    let object = alloc_quick(cache);
    if object.is_null() { alloc_slowly(cache, Some(ns)) } else { Ok(object) }
}

/// As [`alloc`] and [`alloc_wait`], without a look at the processor's array.
#[cold]
#[inline(never)]
pub fn alloc_slowly(cache: usize, wait_ns: Option<u64>) -> Result<*mut u8, Fault> {
    slowly(cache, || OBJECT_CACHES.alloc(&HEAP, cache, wait_ns))
}

/// An object from this processor's array; null if it has none, or something is wrong.
#[inline(always)]
pub fn alloc_quick(cache: usize) -> *mut u8 {
    let areas = tls::arrays();
    if areas <= 1 {
        return null_mut();
    }
    // SAFETY: the thread has the areas, with an array for any word that is given, since it may use them.
    let object = unsafe { PROCESSOR_CACHES.rseq_known().take(areas + arrays::place(cache), cache) };
    if !object.is_null() {
        if marks_elsewhere(cache) {
            unmark_elsewhere(cache, object);
        } else {
            // SAFETY: the object has its mark there.
            unsafe { object.cast::<usize>().write(0) };
        }
    }
    object
}

/// Wipes the mark of an object that its cache's array has given.
#[inline(always)]
fn unmark_elsewhere(cache: usize, object: *mut u8) {
    if marks_in_entries(cache) {
        // SAFETY: the thread has used a cache, and the object lies on a page of one.
        return unsafe { OBJECT_CACHES.entries.of_object(object) }.unmark(object);
    }
    // SAFETY: the owner of an array is a living cache, of which an object is out now; it has its mark where the cache says.
    unsafe {
        let slot = &*((cache & !(ALIGN - 1)) as *const Slot);
        object.add(slot.mark_at.load(Relaxed)).cast::<usize>().write(0);
    }
}

/// Takes an object back, in its constructed state; null is nothing to free.
///
/// # Safety
/// Any pointer may be given; if it is an object of the cache that is out, the caller gives it up.
#[inline(always)]
pub unsafe fn free(cache: usize, object: *mut u8) -> Result<(), Misuse> {
    // SAFETY: by the contract.
    unsafe { if free_quick(cache, object) { Ok(()) } else { free_slowly(cache, object) } }
}

/// As [`free`], without a look at the processor's array.
///
/// # Safety
/// As [`free`].
#[cold]
#[inline(never)]
pub unsafe fn free_slowly(cache: usize, object: *mut u8) -> Result<(), Misuse> {
    if object.is_null() {
        return OBJECT_CACHES.resolve(cache).map(|_| ());
    }
    slowly(cache, || {
        // SAFETY: by the contract.
        let freed = if debug::in_use() { unsafe { OBJECT_CACHES.free_buffer(&HEAP, cache, object) } } else { None };
        // SAFETY: by the contract.
        freed.unwrap_or_else(|| nested::within(|| unsafe { OBJECT_CACHES.free(&HEAP, cache, object) }))
    })
}

/// Adds an object to this processor's array if it is one of the cache that is out, and there is room.
///
/// # Safety
/// As [`free`], unless the answer is `false`.
#[inline(always)]
pub unsafe fn free_quick(cache: usize, object: *mut u8) -> bool {
    let areas = tls::arrays();
    if areas <= 1 {
        return false;
    }
    // SAFETY: who has the areas has used a cache.
    let Some(entry) = (unsafe { OBJECT_CACHES.entries.known(object as usize) }) else { return false };
    if !entry.is_start_of(cache, object as usize) {
        return false;
    }
    // One load tells of every cache where its marks are; a test for the usual place first would be a jump more for all of them.
    if !entry.mark_free(HEAP.layout().key, object) {
        return false;
    }
    // SAFETY: as in `alloc_quick`.
    if unsafe { PROCESSOR_CACHES.rseq_known().put(areas + entry.array_at.load(Relaxed), object) } {
        return true;
    }
    unmark(entry, object)
}

/// Takes back the mark of an object for which there was no room.
#[cold]
fn unmark(entry: &Entry, object: *mut u8) -> bool {
    entry.set_mark(HEAP.layout().key, object, false);
    false
}

/// Destroys a cache and what is free of it. While objects are out, so many, nothing is done.
pub fn destroy(cache: usize) -> Result<Result<(), u64>, Fault> {
    let saved = process::errno();
    let result = OBJECT_CACHES.destroy(&HEAP, cache);
    background::poke_in_free();
    process::set_errno(saved);
    result
}

/// Sees to it that `objects` objects may be out at a time without memory being asked for: constructs what is missing now. 0 takes the promise back.
pub fn prefill(cache: usize, objects: usize) -> Result<(), Fault> {
    slowly(cache, || OBJECT_CACHES.prefill(&HEAP, cache, objects))
}

/// Gives back what a cache does not need now; returns how many bytes went to the heap.
pub fn reap(cache: usize) -> Result<usize, Fault> {
    slowly(cache, || OBJECT_CACHES.reap(&HEAP, cache))
}

/// Counts of a cache.
pub fn stats(cache: usize) -> Result<CacheStats, Misuse> {
    OBJECT_CACHES.stats(cache)
}

/// Counts of every cache, by number. No cache may be used in `tell`.
pub fn each(tell: impl FnMut(CacheStats)) {
    OBJECT_CACHES.each(tell);
}
