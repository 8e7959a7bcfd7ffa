//! The process's object caches, for C, C++ and Rust; keeps `errno`.
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
    fn checks_of(name: &[u8]) -> u16 {
        KIT.checks_of_cache(name)
    }

    fn alloc(id: u16, size: usize, align: usize, checks: u16) -> *mut u8 {
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

/// Runs deferred and background work.
fn slowly<R>(cache: usize, call: impl FnOnce() -> R) -> R {
    let saved = process::errno();
    let result = call();
    OBJECT_CACHES.over(&HEAP).run_deferred(cache);
    govern::run_chores();
    process::set_errno(saved);
    result
}

/// Returns a handle, never 0.
pub fn create(options: &Options<'_>) -> Result<usize, Refused> {
    let saved = process::errno();
    let made =
        if set_up() { nested::within(|| OBJECT_CACHES.over(&HEAP).create(options)) } else { Err(Refused::NoMemory) };
    process::set_errno(saved);
    made
}

/// In its constructed state.
#[inline]
pub fn alloc(cache: usize) -> Result<*mut u8, Fault> {
    let object = alloc_quick(cache);
    if object.is_null() { alloc_slowly(cache, None) } else { Ok(object) }
}

/// Waits up to `ns` nanoseconds for a free object.
pub fn alloc_wait(cache: usize, ns: u64) -> Result<*mut u8, Fault> {
    let object = alloc_quick(cache);
    if object.is_null() { alloc_slowly(cache, Some(ns)) } else { Ok(object) }
}

/// Past the CPU's array.
#[cold]
#[inline(never)]
pub fn alloc_slowly(cache: usize, wait_ns: Option<u64>) -> Result<*mut u8, Fault> {
    slowly(cache, || OBJECT_CACHES.over(&HEAP).alloc(cache, wait_ns))
}

/// Null if the CPU's array is empty, or on any fault.
#[inline(always)]
pub fn alloc_quick(cache: usize) -> *mut u8 {
    let areas = tls::arrays();
    if areas <= Words::NONE {
        return null_mut();
    }
    // SAFETY: the thread had the sequences when its word was set.
    unsafe { OBJECT_CACHES.pop(PROCESSOR_CACHES.rseq_known(), areas, cache) }
}

/// In its constructed state; null is ignored.
///
/// # Safety
/// A live object of the cache is given up.
#[inline(always)]
pub unsafe fn free(cache: usize, object: *mut u8) -> Result<(), Misuse> {
    // SAFETY: by the contract.
    unsafe { if free_quick(cache, object) { Ok(()) } else { free_slowly(cache, object) } }
}

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

/// # Safety
/// As [`free`], if it returns `true`.
#[inline(always)]
pub unsafe fn free_quick(cache: usize, object: *mut u8) -> bool {
    let areas = tls::arrays();
    if areas <= Words::NONE {
        return false;
    }
    // SAFETY: by the contract, and as in `alloc_quick`.
    unsafe { OBJECT_CACHES.over(&HEAP).push(PROCESSOR_CACHES.rseq_known(), areas, cache, object) }
}

/// With live objects it does nothing; the inner error is their number.
pub fn destroy(cache: usize) -> Result<Result<(), u64>, Fault> {
    let saved = process::errno();
    let result = OBJECT_CACHES.over(&HEAP).destroy(cache);
    govern::run_chores_in_free();
    process::set_errno(saved);
    result
}

/// Allocates until `objects` may be live without more memory; 0 drops that reserve.
pub fn prefill(cache: usize, objects: usize) -> Result<(), Fault> {
    slowly(cache, || OBJECT_CACHES.over(&HEAP).prefill(cache, objects))
}

/// Returns the bytes returned to the heap.
pub fn reap(cache: usize) -> Result<usize, Fault> {
    slowly(cache, || OBJECT_CACHES.over(&HEAP).reap(cache))
}

pub fn stats(cache: usize) -> Result<CacheStats, Misuse> {
    OBJECT_CACHES.stats(cache)
}

/// `each` must not use a cache.
pub fn each(each: impl FnMut(CacheStats)) {
    OBJECT_CACHES.each(each);
}

#[cfg(all(test, not(loom)))]
mod tests;
