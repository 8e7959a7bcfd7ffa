//! Foreign pointers: after `dlopen` the process keeps its allocator, whose pointers may reach us.
//!
//! **What.** We pass such pointers to it. If we are the process's allocator, other namespaces may
//! have others ([`alien`]).
//!
//! **Unsafe.** Calls functions by the linker's addresses, with the types that their names imply.

use crate::alien::{self, Allocator};
use core::ffi::{CStr, c_void};
use craton_malloc::sizes::{self, Claim};
use craton_malloc::{Misuse, front};
use craton_os::symbol;

/// The function of the process's own allocator with this name, unless that is `ours`.
fn other(name: &CStr, ours: usize) -> Option<usize> {
    Some(symbol::find(name)).filter(|a| *a != 0 && *a != ours)
}

/// The allocator of another namespace that has a pointer, which is then no misuse.
fn alien(pointer: *mut c_void, misuse: Misuse) -> Option<Allocator> {
    let ours = crate::c::free as *const () as usize;
    (misuse == Misuse::Foreign).then(|| alien::owner(pointer, ours)).flatten()
}

/// Frees a pointer that the fast path did not take.
///
/// # Safety
/// The program gives the pointer up.
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_slowly(pointer: *mut c_void, call: &'static str) {
    // SAFETY: by the contract.
    unsafe {
        if !front::free_on_morphed(pointer.cast()) {
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

/// Frees a pointer with a claim about it, after the fast path refused pointer or size.
///
/// # Safety
/// The program gives the pointer up.
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_sized_slowly(pointer: *mut c_void, call: &'static str, claim: Claim) {
    // SAFETY: by the contract.
    unsafe {
        if !sizes::free_on_morphed(pointer.cast(), claim) {
            free_sized_otherwise(pointer, call, claim);
        }
    }
}

/// # Safety
/// As [`free_sized_slowly`].
#[inline(never)]
unsafe fn free_sized_otherwise(pointer: *mut c_void, call: &'static str, claim: Claim) {
    // Whatever is claimed of it (C23 7.24.3.4).
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

/// Handles a foreign or bad pointer.
///
/// # Safety
/// The program gives the pointer up.
pub(crate) unsafe fn free_refused(call: &'static str, pointer: *mut c_void, misuse: Misuse) {
    match other(c"free", crate::c::free as *const () as usize) {
        Some(address) if misuse == Misuse::Foreign => {
            // SAFETY: this is what the process calls `free`, and the pointer is not ours.
            unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(address)(pointer) }
        }
        _ => match alien(pointer, misuse) {
            // SAFETY: by the contract.
            Some(allocator) => unsafe { allocator.free(pointer) },
            None => front::die(call, pointer.cast(), misuse),
        },
    }
}

/// Deals with a pointer that `realloc` refused.
///
/// # Safety
/// As the program's call of `realloc`.
#[cold]
pub(crate) unsafe fn realloc(call: &'static str, pointer: *mut c_void, size: usize, misuse: Misuse) -> *mut c_void {
    type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    match other(c"realloc", crate::c::realloc as *const () as usize) {
        Some(address) if misuse == Misuse::Foreign => {
            // SAFETY: this is what the process calls `realloc`, and the pointer is not ours.
            unsafe { core::mem::transmute::<usize, Realloc>(address)(pointer, size) }
        }
        _ => match alien(pointer, misuse) {
            // SAFETY: by the contract.
            Some(allocator) => unsafe { allocator.realloc(pointer, size) },
            None => front::die(call, pointer.cast(), misuse),
        },
    }
}

/// Deals with a pointer that `malloc_usable_size` refused.
///
/// # Safety
/// As the program's call of `malloc_usable_size`.
#[cold]
pub(crate) unsafe fn usable_size(pointer: *mut c_void, misuse: Misuse) -> usize {
    match other(c"malloc_usable_size", crate::c::malloc_usable_size as *const () as usize) {
        Some(address) if misuse == Misuse::Foreign => {
            // SAFETY: the process calls this `malloc_usable_size`; the pointer is not ours.
            unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> usize>(address)(pointer) }
        }
        _ => match alien(pointer, misuse) {
            // SAFETY: by the contract.
            Some(allocator) => unsafe { allocator.usable_size(pointer) },
            None => front::die("malloc_usable_size", pointer.cast(), misuse),
        },
    }
}
