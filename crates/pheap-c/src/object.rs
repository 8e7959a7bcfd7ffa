//! Objects and their slots.
//!
//! **Unsafe.** Takes pointers and functions from C.

use crate::call::on;
use crate::code::Failure;
use crate::handle::Pheap;
use craton_persistent::raw::Offset;
use std::ffi::{c_int, c_void};

type Constructor = unsafe extern "C" fn(object: *mut c_void, argument: *mut c_void) -> c_int;

/// # Safety
/// `to` is null or writable.
pub unsafe fn tell(heap: &Pheap, at: u64, to: *mut *mut c_void) {
    if !to.is_null() {
        // SAFETY: by the contract.
        unsafe { to.write(heap.pointer(at)) };
    }
}

/// # Safety
/// `heap` is null or open, `object` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_alloc_to(
    heap: *const Pheap,
    slot: *mut u64,
    size: usize,
    object: *mut *mut c_void,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_alloc_to", heap, |heap| {
            let at = heap.raw.alloc_to(heap.slot(slot)?, size as u64)?;
            tell(heap, at.0, object);
            Ok(())
        })
    }
}

/// The function's contents are durable before the slot holds the object.
///
/// # Safety
/// As `craton_pheap_alloc_to`; the function may be called with the object and `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_alloc_with(
    heap: *const Pheap,
    slot: *mut u64,
    size: usize,
    constructor: Option<Constructor>,
    argument: *mut c_void,
    object: *mut *mut c_void,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_alloc_with", heap, |heap| {
            let constructor = constructor.ok_or(Failure::Argument("the constructor", "is null"))?;
            let slot = heap.slot(slot)?;
            let reserved = heap.raw.reserve(size as u64)?;
            let at = reserved.at().0;
            let status = constructor(heap.pointer(at), argument);
            if status != 0 {
                return Err(Failure::Cancelled(status));
            }
            heap.raw.publish(slot, reserved)?;
            tell(heap, at, object);
            Ok(())
        })
    }
}

/// # Safety
/// `heap` is null or open; the object is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_free_from(heap: *const Pheap, slot: *mut u64) -> c_int {
    // SAFETY: by the contract.
    unsafe { on("craton_pheap_free_from", heap, |heap| Ok(heap.raw.free_from(heap.slot(slot)?)?)) }
}

/// # Safety
/// As `craton_pheap_free_from`; `object` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_realloc(
    heap: *const Pheap,
    slot: *mut u64,
    size: usize,
    object: *mut *mut c_void,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_realloc", heap, |heap| {
            let at = heap.raw.realloc(heap.slot(slot)?, size as u64)?;
            tell(heap, at.0, object);
            Ok(())
        })
    }
}

/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_set(heap: *const Pheap, slot: *mut u64, value: u64) -> c_int {
    // SAFETY: by the contract.
    unsafe { on("craton_pheap_set", heap, |heap| Ok(heap.raw.set(heap.slot(slot)?, heap.check_value(value)?)?)) }
}

/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_persist(heap: *const Pheap, from: *const c_void, bytes: usize) -> c_int {
    // SAFETY: by the contract.
    unsafe { on("craton_pheap_persist", heap, |heap| Ok(heap.raw.persist(heap.offset(from)?, bytes as u64)?)) }
}

/// # Safety
/// `heap` is null or open, `bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_usable_size(
    heap: *const Pheap,
    object: *const c_void,
    bytes: *mut usize,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_usable_size", heap, |heap| {
            let size = heap.raw.size_of(Offset(heap.offset(object)?))?;
            if !bytes.is_null() {
                bytes.write(size as usize);
            }
            Ok(())
        })
    }
}

/// 0 for null and for addresses outside of the mapping.
///
/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_offset(heap: *const Pheap, pointer: *const c_void) -> u64 {
    // SAFETY: by the contract.
    let heap = unsafe { Pheap::of(heap) };
    heap.and_then(|heap| heap.offset(pointer).ok()).unwrap_or(0)
}

/// Null for 0 and for offsets beyond the heap.
///
/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_pointer(heap: *const Pheap, offset: u64) -> *mut c_void {
    // SAFETY: by the contract.
    let heap = unsafe { Pheap::of(heap) };
    let inside = heap.filter(|heap| offset != 0 && offset < heap.raw.len());
    inside.map_or(std::ptr::null_mut(), |heap| heap.pointer(offset))
}
