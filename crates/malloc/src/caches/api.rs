//! Object caches of the process: what C, C++ and Rust call.
//!
//! **Failure.** A [`Fault`] or a [`Misuse`] for the caller to report; `errno` is left as it was.
//!
//! **Unsafe.** Takes objects from callers.

use super::{CacheStats, Fault, Options, Refused};
use crate::debug;
use crate::debug::Target;
use crate::govern;
use crate::here::Here;
use crate::observe::report;
use crate::start::set_up;
use crate::statics::{HEAP, KIT, OBJECT_CACHES, PROCESSOR_CACHES};
use crate::thread::{nested, tls};
use core::ptr::null_mut;
use craton_heap::Misuse;
use craton_objects::process::{Process, Watch, Words};
use craton_os::process;
use craton_os::rseq::Rseq;

impl Process for Here {
    #[inline(always)]
    fn within<R>(part: impl FnOnce() -> R) -> R {
        nested::within(part)
    }

    fn make_room() -> bool {
        govern::make_room()
    }

    fn holds_much() {
        govern::want_thread();
    }

    fn sequences(own: bool) -> Option<&'static Rseq> {
        let rseq = PROCESSOR_CACHES.rseq()?;
        (!own || tls::get() != tls::alone() && rseq.is_registered()).then_some(rseq)
    }

    fn words() -> Words {
        Words { arrays: tls::arrays(), building: tls::building() }
    }

    fn set_words(words: Words) {
        tls::set_arrays(words.arrays);
        tls::set_building(words.building);
    }
}

impl Watch for Here {
    fn checks_of(name: &[u8]) -> u8 {
        KIT.checks_of_cache(name)
    }

    fn alloc(id: u16, size: usize, align: usize, checks: u8) -> *mut u8 {
        debug::alloc_target(size, align, Target::cache(id), checks)
    }

    unsafe fn free(id: u16, buffer: *mut u8) {
        // SAFETY: by the contract.
        let freed = unsafe { debug::free_target(buffer, Target::cache(id)) };
        debug_assert!(freed, "it came from the kit");
    }

    fn is_buffer(id: u16, object: *mut u8) -> bool {
        debug::is_buffer_of(object, Target::cache(id))
    }

    fn report_live(id: u16) {
        KIT.report_live(Target::cache(id), "craton_cache_destroy");
    }

    fn corrupt(object: *mut u8, misuse: Misuse) -> ! {
        report::misuse("craton_cache_free", object, misuse)
    }
}

/// A slow call on a cache: keeps `errno`, and does deferred and background work.
fn slowly<R>(cache: usize, call: impl FnOnce() -> R) -> R {
    let saved = process::errno();
    let result = call();
    OBJECT_CACHES.over(&HEAP).run_deferred(cache);
    govern::poke();
    process::set_errno(saved);
    result
}

/// Makes a cache; returns its handle, which is never 0.
pub fn create(options: &Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made =
        if set_up() { nested::within(|| OBJECT_CACHES.over(&HEAP).create(options)) } else { Err(Refused::NoMemory) };
    process::set_errno(saved);
    made
}

/// An object of a cache, in its constructed state.
#[inline]
pub fn alloc(cache: usize) -> Result<*mut u8, Fault> {
    let object = alloc_quick(cache);
    if object.is_null() { alloc_slowly(cache, None) } else { Ok(object) }
}

/// As [`alloc`]; when there is no memory or a limit is reached, waits up to `ns` nanoseconds for an
/// object to come free.
pub fn alloc_wait(cache: usize, ns: u64) -> Result<*mut u8, Fault> {
    let object = alloc_quick(cache);
    if object.is_null() { alloc_slowly(cache, Some(ns)) } else { Ok(object) }
}

/// As [`alloc`] and [`alloc_wait`], past the processor's array.
#[cold]
#[inline(never)]
pub fn alloc_slowly(cache: usize, wait_ns: Option<u64>) -> Result<*mut u8, Fault> {
    slowly(cache, || OBJECT_CACHES.over(&HEAP).alloc(cache, wait_ns))
}

/// An object from this processor's array; null if it has none, or something is wrong.
#[inline(always)]
pub fn alloc_quick(cache: usize) -> *mut u8 {
    let areas = tls::arrays();
    if areas <= Words::NONE {
        return null_mut();
    }
    // SAFETY: the word is the thread's, which was given the sequences when it was set.
    unsafe { OBJECT_CACHES.pop(PROCESSOR_CACHES.rseq_known(), areas, cache) }
}

/// Frees an object in its constructed state; null is nothing to free.
///
/// # Safety
/// Any pointer may be given; if it is a live object of the cache, the caller gives it up.
#[inline(always)]
pub unsafe fn free(cache: usize, object: *mut u8) -> Result<(), Misuse> {
    // SAFETY: by the contract.
    unsafe { if free_quick(cache, object) { Ok(()) } else { free_slowly(cache, object) } }
}

/// As [`free`], past the processor's array.
///
/// # Safety
/// As [`free`].
#[cold]
#[inline(never)]
pub unsafe fn free_slowly(cache: usize, object: *mut u8) -> Result<(), Misuse> {
    if object.is_null() {
        return OBJECT_CACHES.check(cache);
    }
    // SAFETY: by the contract.
    slowly(cache, || unsafe { OBJECT_CACHES.over(&HEAP).free(cache, object) })
}

/// Adds an object to this processor's array if it is a live one of the cache, and there is room.
///
/// # Safety
/// As [`free`], unless the answer is `false`.
#[inline(always)]
pub unsafe fn free_quick(cache: usize, object: *mut u8) -> bool {
    let areas = tls::arrays();
    if areas <= Words::NONE {
        return false;
    }
    // SAFETY: by the contract, and as in `alloc_quick`.
    unsafe { OBJECT_CACHES.over(&HEAP).push(PROCESSOR_CACHES.rseq_known(), areas, cache, object) }
}

/// Destroys a cache. While objects are live nothing happens, and the inner error is their number.
pub fn destroy(cache: usize) -> Result<Result<(), u64>, Fault> {
    let saved = process::errno();
    let result = OBJECT_CACHES.over(&HEAP).destroy(cache);
    govern::poke_in_free();
    process::set_errno(saved);
    result
}

/// Makes objects until `objects` of them may be live at a time without another request for memory;
/// 0 takes the promise back.
pub fn prefill(cache: usize, objects: usize) -> Result<(), Fault> {
    slowly(cache, || OBJECT_CACHES.over(&HEAP).prefill(cache, objects))
}

/// Frees what a cache does not need now; returns how many bytes went to the heap.
pub fn reap(cache: usize) -> Result<usize, Fault> {
    slowly(cache, || OBJECT_CACHES.over(&HEAP).reap(cache))
}

/// Counts of a cache.
pub fn stats(cache: usize) -> Result<CacheStats, Misuse> {
    OBJECT_CACHES.stats(cache)
}

/// Counts of every cache, by number. No cache may be used in `each`.
pub fn each(each: impl FnMut(CacheStats)) {
    OBJECT_CACHES.each(each);
}

#[cfg(all(test, not(loom)))]
mod tests;
