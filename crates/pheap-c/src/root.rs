//! Slots by name.
//!
//! **Unsafe.** Takes pointers and functions from C.

use crate::call::on;
use crate::code::Failure;
use crate::handle::Pheap;
use craton_persistent::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

type Function = unsafe extern "C" fn(argument: *mut c_void, name: *const c_char, slot: *mut u64, tag: u64);

/// # Safety
/// `name` is null or a string.
unsafe fn bytes<'a>(name: *const c_char) -> Result<&'a [u8], Failure> {
    match name.is_null() {
        true => Err(Failure::Argument("the name", "is null")),
        // SAFETY: by the contract.
        false => Ok(unsafe { CStr::from_ptr(name) }.to_bytes()),
    }
}

/// Names the root in the failure.
fn of<T>(name: &[u8], result: Result<T, Error>) -> Result<T, Failure> {
    result.map_err(|why| Failure::Root(name.escape_ascii().to_string(), why))
}

/// # Safety
/// `heap` is null or open, `name` is null or a string, `slot` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_add_root(
    heap: *const Pheap,
    name: *const c_char,
    tag: u64,
    slot: *mut *mut u64,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_add_root", heap, |heap| {
            let name = bytes(name)?;
            let at = of(name, heap.raw.add_root(name, tag))?;
            if !slot.is_null() {
                slot.write(heap.pointer(at.0));
            }
            Ok(())
        })
    }
}

/// # Safety
/// As `craton_pheap_add_root`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_root(
    heap: *const Pheap,
    name: *const c_char,
    tag: u64,
    slot: *mut *mut u64,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_root", heap, |heap| {
            let name = bytes(name)?;
            let root = of(name, heap.raw.root(name))?;
            if root.tag != tag {
                return of(name, Err(Error::RootType { found: root.tag, expected: tag }));
            }
            if !slot.is_null() {
                slot.write(heap.pointer(root.slot.0));
            }
            Ok(())
        })
    }
}

/// # Safety
/// `heap` is null or open, `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_remove_root(heap: *const Pheap, name: *const c_char) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_remove_root", heap, |heap| {
            let name = bytes(name)?;
            of(name, heap.raw.remove_root(name))
        })
    }
}

/// # Safety
/// `heap` is null or open; the function may be called with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_pheap_each_root(
    heap: *const Pheap,
    function: Option<Function>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: by the contract.
    unsafe {
        on("craton_pheap_each_root", heap, |heap| {
            let function = function.ok_or(Failure::Argument("the function", "is null"))?;
            for root in heap.raw.roots()? {
                // Rust programs' names may have a zero byte.
                let end = root.name().iter().position(|byte| *byte == 0).unwrap_or(root.name().len());
                let name = CString::new(&root.name()[..end]).unwrap_or_default();
                function(argument, name.as_ptr(), heap.pointer(root.slot.0), root.tag);
            }
            Ok(())
        })
    }
}
