//! **Unsafe.** Takes pointers from C.

use crate::call::on;
use crate::code::Failure;
use crate::handle::Pheap;
use crate::object::tell;
use std::ffi::{c_int, c_void};

/// # Safety
/// `heap` is null or open, `object` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_reserve(heap: *const Pheap, size: usize, object: *mut *mut c_void) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_reserve", heap, |heap| {
            if object.is_null() {
                return Err(Failure::Argument("the place for the object", "is null"));
            }
            let reserved = heap.raw.reserve(size as u64)?;
            let at = reserved.at().0;
            heap.keep(reserved);
            tell(heap, at, object);
            Ok(())
        })
    }
}

/// # Safety
/// `heap` is null or open; the object is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_cancel(heap: *const Pheap, object: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_cancel", heap, |heap| {
            drop(heap.take_reserved(object)?);
            Ok(heap.raw.check_process()?)
        })
    }
}

/// # Safety
/// `heap` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_publish(heap: *const Pheap, slot: *mut u64, object: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_publish", heap, |heap| {
            let object = heap.take_reserved(object)?;
            Ok(heap.raw.publish(heap.slot(slot)?, object)?)
        })
    }
}

/// # Safety
/// As `craton_pheap_publish`; the slot's object is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_replace(heap: *const Pheap, slot: *mut u64, object: *mut c_void) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_replace", heap, |heap| {
            let object = heap.take_reserved(object)?;
            Ok(heap.raw.replace(heap.slot(slot)?, object)?)
        })
    }
}
