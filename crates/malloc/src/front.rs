//! malloc and its kin for C, C++ and Rust, before their rules about names and errors.
//!
//! **What.** Null means no memory, with `errno` set; the caller reports a [`Misuse`].
//!
//! **Cost.** malloc: 17 instructions if the thread cache has an object; free: 28 if it has room.
//!
//! **Unsafe.** Uses the thread's cache; takes objects from callers.

mod alloc;
mod apart;
mod free;
mod resize;

use crate::debug;
use crate::observe::report;
use crate::observe::report::Call;
use crate::statics::{FAILURES, HEAP, HEAPS, OBJECT_CACHES, PROCESSOR_CACHES, READY, SEGMENT};
use crate::thread::{nested, tls};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::PAGE_SIZE;
use craton_heap::size_class::{self, MAX_CLASSED};
use craton_heap::thread_cache::{MAX_QUICK, ThreadCache};
use craton_heap::{Found, Misuse};
use craton_os::process;

use crate::errno::no_memory;
pub(crate) use crate::errno::with_errno;
pub use crate::fork::{after_clone, before_clone};
pub(crate) use alloc::MAX_SLABBED;
use alloc::{malloc_beyond_quick, malloc_cleared, malloc_large, malloc_quick, malloc_sized};
pub(crate) use apart::free_what_waits;
pub use craton_kit::family;
pub use free::{free, free_by_turn, free_on_morphed, free_otherwise};
pub(crate) use free::{free_by_turn_if, free_on_morphed_if};
pub use resize::realloc;

/// C11 6.5.6: pointer differences must fit.
const MAX_SIZE: usize = isize::MAX as usize;

const MAX_CLEARED: usize = 32 << 10;

/// Aligned to 16.
#[inline(always)]
pub fn malloc(size: usize) -> *mut u8 {
    malloc_by::<{ family::C }>(size)
}

#[inline(always)]
pub fn malloc_by<const FAMILY: u8>(size: usize) -> *mut u8 {
    if size <= MAX_QUICK {
        // SAFETY: this thread's cache or one of `NoCaches`; the size was checked.
        let object = unsafe { ThreadCache::pop_quick(tls::get(), size) };
        if !object.is_null() {
            return object;
        }
        return malloc_quick::<FAMILY>(size);
    }
    malloc_beyond_quick::<FAMILY>(size)
}

pub fn calloc(size: usize) -> *mut u8 {
    calloc_by::<{ family::C }>(size)
}

#[inline(always)]
pub fn calloc_by<const FAMILY: u8>(size: usize) -> *mut u8 {
    if size > MAX_CLEARED {
        // Pages known to be zero are neither cleared nor touched.
        return malloc_cleared(size);
    }
    let object = malloc_by::<FAMILY>(size);
    if !object.is_null() {
        // SAFETY: our object.
        unsafe { object.write_bytes(0, size) };
    }
    object
}

pub fn aligned(align: usize, size: usize) -> *mut u8 {
    aligned_by::<{ family::C }>(align, size)
}

#[inline(always)]
pub fn aligned_by<const FAMILY: u8>(align: usize, size: usize) -> *mut u8 {
    debug_assert!(align.is_power_of_two());
    if align <= 16 {
        return malloc_by::<FAMILY>(size);
    }
    match size_class::class_of_aligned(size, align) {
        Some(class) => {
            // SAFETY: as in `malloc`.
            let object = unsafe { ThreadCache::pop(tls::get(), class) };
            if object.is_null() { malloc_sized(class, size, align, FAMILY) } else { object }
        }
        None if align > MAX_SIZE => no_memory(),
        None => malloc_large(size, align, false, FAMILY),
    }
}

/// After `false` call [`free`].
///
/// # Safety
/// Any pointer; an object of ours is given up, unless it returns `false`.
#[inline(always)]
pub unsafe fn try_free(pointer: *mut u8) -> bool {
    // SAFETY: as in `malloc`.
    unsafe { ThreadCache::push(tls::get(), pointer) }
}

pub const MAX_TRUSTED: usize = MAX_QUICK;

/// After `false` call [`free`].
///
/// # Safety
/// The object is live, of `size` ≤ [`MAX_TRUSTED`] bytes and alignment ≤ 16 (or was resized within
/// that class), and given up, unless it returns `false`.
#[inline(always)]
pub unsafe fn try_free_trusted(object: *mut u8, size: usize) -> bool {
    // SAFETY: as in `malloc`, and by the contract.
    unsafe { ThreadCache::push_trusted(tls::get(), object, size) }
}

/// Whether an unaligned object of `size` serves for `other`, too.
#[inline]
pub fn serves(pointer: *mut u8, size: usize, other: usize) -> bool {
    // A kit's buffer has exactly the requested size.
    size.max(other) <= MAX_CLASSED
        && size_class::class_of(size) == size_class::class_of(other)
        && !debug::may_be_buffer(pointer)
}

/// 0 for null, and in a signal handler that would need a lock.
///
/// # Safety
/// Any pointer; no other thread frees the object meanwhile.
pub unsafe fn usable_size(pointer: *mut u8) -> Result<usize, Misuse> {
    // SAFETY: as in `malloc`.
    if let Some((class, _)) = unsafe { ThreadCache::recognise(tls::get(), pointer) } {
        return Ok(size_class::size_of_class(class));
    }
    if pointer.is_null() {
        return Ok(0);
    }
    if !READY.load(Relaxed) {
        return Err(Misuse::Foreign);
    }
    if let Some(size) = nested::size_of(pointer).or_else(|| debug::size_of("malloc_usable_size", pointer)) {
        return Ok(size);
    }
    find(pointer).map_or(Ok(0), |found| found.usable())
}

pub(crate) fn find(pointer: *mut u8) -> Option<Found> {
    let is_known = !nested::is_nested() || HEAP.is_found_at_once(pointer);
    is_known.then(|| nested::within(|| HEAP.find(pointer)))
}

pub(crate) fn class_failures(class: usize) -> u32 {
    FAILURES[class].load(Relaxed)
}

/// Returns all free memory to the system.
pub fn release() -> u64 {
    if !READY.load(Relaxed) || nested::is_nested() {
        return 0;
    }
    let saved = process::errno();
    OBJECT_CACHES.over(&HEAP).reap_all();
    let bytes = nested::within(|| {
        if let Some(cache) = tls::own() {
            // SAFETY: this thread's cache.
            unsafe { HEAP.empty_cache(cache) };
        }
        PROCESSOR_CACHES.empty(&HEAP);
        HEAP.release(|| HEAPS.over(&HEAP).trim())
    });
    process::set_errno(saved);
    bytes
}

/// Includes other threads' cached objects.
pub fn bytes_in_use() -> u64 {
    if !READY.load(Relaxed) {
        return 0;
    }
    let spare = HEAPS.spare().bytes().0 as u64;
    let large = SEGMENT.huge_bytes.load(Relaxed) + HEAP.large_bytes().saturating_sub(spare);
    let own = tls::own().map_or(0, |c| {
        // SAFETY: this thread's cache.
        unsafe { (*c).bytes() as u64 }
    });
    (HEAP.bytes_out() + large).saturating_sub(own + PROCESSOR_CACHES.bytes() as u64)
}

pub(crate) fn is_ready() -> bool {
    READY.load(Relaxed)
}

pub fn class_stats(class: usize) -> craton_slab::SlabStats {
    HEAP.class_stats(class)
}

/// Ends the process if the kit checks for it, and another family of functions allocated.
pub fn check_pair(pointer: *mut u8, call: Call, with_align: bool) {
    debug::check_pair(pointer, call, with_align);
}

pub fn die(call: Call, pointer: *mut u8, misuse: Misuse) -> ! {
    debug::report_misuse(call, pointer, misuse);
    report::misuse(call, pointer, misuse)
}

const _: () = assert!(PAGE_SIZE >= 4096);

#[cfg(all(test, not(loom)))]
mod tests;
