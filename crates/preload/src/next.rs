//! Foreign pointers: after `dlopen` the process keeps its allocator, which gets its pointers. Other
//! namespaces may have others ([`alien`]).
//!
//! **Unsafe.** Calls functions by the linker's addresses.

use crate::alien::{self, Allocator};
use core::ffi::{CStr, c_void};
use craton_malloc::sizes::{self, Claim};
use craton_malloc::{Misuse, front};
use craton_os::symbol;

fn other(name: &CStr, ours: usize) -> Option<usize> {
    Some(symbol::find(name)).filter(|a| *a != 0 && *a != ours)
}

fn alien(pointer: *mut c_void, misuse: Misuse) -> Option<Allocator> {
    let ours = crate::c::free as *const () as usize;
    (misuse == Misuse::Foreign).then(|| alien::owner(pointer, ours)).flatten()
}

/// # Safety
/// The pointer is given up.
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_slowly(pointer: *mut c_void, call: &'static str) {
    // SAFETY: by the contract.
    unsafe {
        if !front::free_by_turn(pointer.cast()) && !front::free_on_morphed(pointer.cast()) {
            free_otherwise(pointer, call);
        }
    }
}

/// # Safety
/// As [`free_slowly`].
#[inline(never)]
unsafe fn free_otherwise(pointer: *mut c_void, call: &'static str) {
    front::check_pair(pointer.cast(), call, false);
    // SAFETY: by the contract.
    unsafe {
        if let Err(misuse) = front::free_otherwise(pointer.cast()) {
            free_refused(call, pointer, misuse);
        }
    }
}

/// After the fast path refused pointer or size.
///
/// # Safety
/// The pointer is given up.
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_sized_slowly(pointer: *mut c_void, call: &'static str, claim: Claim) {
    // SAFETY: by the contract.
    unsafe {
        if !sizes::free_in_cache(pointer.cast(), claim) {
            free_sized_otherwise(pointer, call, claim);
        }
    }
}

/// # Safety
/// As [`free_sized_slowly`].
#[inline(never)]
unsafe fn free_sized_otherwise(pointer: *mut c_void, call: &'static str, claim: Claim) {
    // Whatever the claim (C23 7.24.3.4).
    if pointer.is_null() {
        return;
    }
    front::check_pair(pointer.cast(), call, claim.align > 1);
    // SAFETY: by the contract.
    unsafe {
        if let Err(misuse) = sizes::free(pointer.cast(), claim) {
            free_refused(call, pointer, misuse);
        }
    }
}

/// # Safety
/// The pointer is given up.
pub(crate) unsafe fn free_refused(call: &'static str, pointer: *mut c_void, misuse: Misuse) {
    match other(c"free", crate::c::free as *const () as usize) {
        Some(address) if misuse == Misuse::Foreign => {
            // SAFETY: the process's `free`; not our pointer.
            unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(address)(pointer) }
        }
        _ => match alien(pointer, misuse) {
            // SAFETY: by the contract.
            Some(allocator) => unsafe { allocator.free(pointer) },
            None => front::die(call, pointer.cast(), misuse),
        },
    }
}

/// # Safety
/// As `realloc`.
#[cold]
pub(crate) unsafe fn realloc(call: &'static str, pointer: *mut c_void, size: usize, misuse: Misuse) -> *mut c_void {
    type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    match other(c"realloc", crate::c::realloc as *const () as usize) {
        Some(address) if misuse == Misuse::Foreign => {
            // SAFETY: the process's `realloc`; not our pointer.
            unsafe { core::mem::transmute::<usize, Realloc>(address)(pointer, size) }
        }
        _ => match alien(pointer, misuse) {
            // SAFETY: by the contract.
            Some(allocator) => unsafe { allocator.realloc(pointer, size) },
            None => front::die(call, pointer.cast(), misuse),
        },
    }
}

/// # Safety
/// As `malloc_usable_size`.
#[cold]
pub(crate) unsafe fn usable_size(pointer: *mut c_void, misuse: Misuse) -> usize {
    match other(c"malloc_usable_size", crate::c::malloc_usable_size as *const () as usize) {
        Some(address) if misuse == Misuse::Foreign => {
            // SAFETY: the process's `malloc_usable_size`; not our pointer.
            unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> usize>(address)(pointer) }
        }
        _ => match alien(pointer, misuse) {
            // SAFETY: by the contract.
            Some(allocator) => unsafe { allocator.usable_size(pointer) },
            None => front::die("malloc_usable_size", pointer.cast(), misuse),
        },
    }
}
