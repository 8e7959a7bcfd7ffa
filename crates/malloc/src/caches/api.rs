//! Object caches of the process: what C, C++ and Rust call.
//!
//! **Failure.** A [`Fault`] or a [`Misuse`] for the caller to report; `errno` is left as it was.
//!
//! **Cost.** An object from the processor's array: 33 instructions; one that goes there: 50.
//!
//! **Unsafe.** Takes objects from callers, and marks them.

use super::arrays::ARRAY;
use super::pages::Entry;
use super::paths::Fault;
use super::slot::{IN_ENTRY, Slot};
use super::{ALIGN, CacheStats, MOST, Options, Refused};
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
    HEAP.caches.heed(&HEAP, cache);
    background::poke();
    process::set_errno(saved);
    result
}

/// Makes a cache; returns its handle, which is never 0.
pub fn create(options: &Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made = if set_up() { nested::within(|| HEAP.caches.create(&HEAP, options)) } else { Err(Refused::NoMemory) };
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
    slowly(cache, || HEAP.caches.alloc(&HEAP, cache, wait_ns))
}

/// An object from this processor's array; null if it has none, or something is wrong.
#[inline(always)]
pub fn alloc_quick(cache: usize) -> *mut u8 {
    let table = tls::arrays();
    // A thread that has the table has used some cache, so that the slots are there.
    if table <= 1 {
        return null_mut();
    }
    let offset = (cache & !(ALIGN - 1)).wrapping_sub(HEAP.caches.base.load(Relaxed));
    if offset >= MOST * size_of::<Slot>() {
        return null_mut();
    }
    // SAFETY: it lies in the slots' mapping, at a multiple of their size.
    let slot = unsafe { &*((cache & !(ALIGN - 1)) as *const Slot) };
    if slot.live() != cache {
        return null_mut();
    }
    // SAFETY: the thread has the table, which holds areas with an array for each slot, since it may use it.
    unsafe {
        let object = PROCESSOR_CACHES.rseq_known().take(table as *const _, offset / (size_of::<Slot>() / ARRAY));
        if !object.is_null() {
            match slot.mark_at.load(Relaxed) {
                IN_ENTRY => HEAP.caches.set_mark(&HEAP, object, false),
                // The object has its mark there.
                at => object.add(at).cast::<usize>().write(0),
            }
        }
        object
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
        return HEAP.caches.resolve(cache).map(|_| ());
    }
    slowly(cache, || {
        // SAFETY: by the contract.
        let freed = if debug::in_use() { unsafe { HEAP.caches.free_buffer(&HEAP, cache, object) } } else { None };
        // SAFETY: by the contract.
        freed.unwrap_or_else(|| nested::within(|| unsafe { HEAP.caches.free(&HEAP, cache, object) }))
    })
}

/// Adds an object to this processor's array if it is one of the cache that is out, and there is room.
///
/// # Safety
/// As [`free`], unless the answer is `false`.
#[inline(always)]
pub unsafe fn free_quick(cache: usize, object: *mut u8) -> bool {
    let table = tls::arrays();
    if table <= 1 {
        return false;
    }
    let Some(entry) = HEAP.caches.entries.of(object as usize) else { return false };
    if entry.cache.load(Relaxed) != cache || !entry.starts(object as usize) {
        return false;
    }
    let key = HEAP.layout().key;
    if !entry.mark_free(key, object) {
        return false;
    }
    // SAFETY: as in `alloc_quick`.
    if unsafe { PROCESSOR_CACHES.rseq_known().put(table as *const _, entry.array_at.load(Relaxed), object) } {
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
    let result = HEAP.caches.destroy(&HEAP, cache);
    background::poke_in_free();
    process::set_errno(saved);
    result
}

/// Sees to it that `objects` objects may be out at a time without memory being asked for: constructs what is missing now. 0 takes the promise back.
pub fn prefill(cache: usize, objects: usize) -> Result<(), Fault> {
    slowly(cache, || HEAP.caches.prefill(&HEAP, cache, objects))
}

/// Gives back what a cache does not need now; returns how many bytes went to the heap.
pub fn reap(cache: usize) -> Result<usize, Fault> {
    slowly(cache, || HEAP.caches.reap(&HEAP, cache))
}

/// Counts of a cache.
pub fn stats(cache: usize) -> Result<CacheStats, Misuse> {
    HEAP.caches.stats(cache)
}

/// Counts of every cache, by number. No cache may be used in `tell`.
pub fn each(tell: impl FnMut(CacheStats)) {
    HEAP.caches.each(tell);
}
