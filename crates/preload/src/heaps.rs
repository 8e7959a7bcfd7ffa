//! `craton_heap_*`.
//!
//! **Failure.** A bad handle or pointer aborts with call and address.
//!
//! **Unsafe.** Takes pointers from C.

use crate::c::{invalid, no_memory};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use craton_malloc::heaps::{Options, OwnStats, Place, Refused, api};
use craton_malloc::{Misuse, front};

#[repr(C)]
pub struct CratonHeapOptions {
    size: usize,
    name: *const c_char,
    limit: usize,
    flags: c_uint,
}

#[repr(C)]
pub struct CratonHeapStats {
    version: u64,
    counts: OwnStats,
}

const PLACES: [Place; 4] = [Place::Shared, Place::Apart, Place::Huge, Place::Small];

fn checked<T>(call: &'static str, pointer: *mut c_void, result: Result<T, Misuse>) -> T {
    match result {
        Ok(value) => value,
        Err(misuse) => front::die(call, pointer.cast(), misuse),
    }
}

fn culprit(heap: *mut c_void, pointer: *mut c_void, misuse: Misuse) -> *mut c_void {
    if matches!(misuse, Misuse::NoHeap | Misuse::HeapDestroyed) { heap } else { pointer }
}

/// # Safety
/// `options` is null, or as `craton.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_heap_create(options: *const CratonHeapOptions) -> *mut c_void {
    let mut wanted = Options { name: b"", limit: 0, place: Place::Shared };
    if !options.is_null() {
        // SAFETY: the first field is in every version.
        if unsafe { (&raw const (*options).size).read() } < size_of::<CratonHeapOptions>() {
            return invalid();
        }
        // SAFETY: at least as long as ours.
        let options = unsafe { &*options };
        let Some(place) = PLACES.get(options.flags as usize) else { return invalid() };
        if !options.name.is_null() {
            // SAFETY: a C string.
            wanted.name = unsafe { CStr::from_ptr(options.name) }.to_bytes();
        }
        (wanted.limit, wanted.place) = (options.limit, *place);
    }
    match api::create(wanted) {
        Ok(heap) => heap as *mut c_void,
        Err(Refused::NoMemory) => no_memory(),
        Err(Refused::Name) => invalid(),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_heap_destroy(heap: *mut c_void) {
    if !heap.is_null() {
        checked("craton_heap_destroy", heap, api::destroy(heap as usize));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_heap_alloc(heap: *mut c_void, size: usize) -> *mut c_void {
    checked("craton_heap_alloc", heap, api::alloc(heap as usize, size, 1, false)).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_heap_aligned_alloc(heap: *mut c_void, align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return invalid();
    }
    checked("craton_heap_aligned_alloc", heap, api::alloc(heap as usize, size, align, false)).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_heap_calloc(heap: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => checked("craton_heap_calloc", heap, api::alloc(heap as usize, bytes, 1, true)).cast(),
        None => no_memory(),
    }
}

/// # Safety
/// The pointer is given up if the result is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_heap_realloc(heap: *mut c_void, pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: by the contract.
    match unsafe { api::realloc(heap as usize, pointer.cast(), size) } {
        Ok(new) => new.cast(),
        Err(misuse) => front::die("craton_heap_realloc", culprit(heap, pointer, misuse).cast(), misuse),
    }
}

/// # Safety
/// The object is given up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_heap_free(heap: *mut c_void, pointer: *mut c_void) {
    // SAFETY: by the contract.
    if let Err(misuse) = unsafe { api::free(heap as usize, pointer.cast()) } {
        front::die("craton_heap_free", culprit(heap, pointer, misuse).cast(), misuse);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_heap_usable_size(heap: *mut c_void, pointer: *mut c_void) -> usize {
    match api::usable_size(heap as usize, pointer.cast()) {
        Ok(bytes) => bytes,
        Err(misuse) => front::die("craton_heap_usable_size", culprit(heap, pointer, misuse).cast(), misuse),
    }
}

/// # Safety
/// `into` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_heap_stats(heap: *mut c_void, into: *mut CratonHeapStats, size: usize) -> c_int {
    let counts = checked("craton_heap_stats", heap, api::stats(heap as usize));
    // SAFETY: by the contract.
    unsafe { crate::c::write_counts(into, size, CratonHeapStats { version: 1, counts }) }
}
