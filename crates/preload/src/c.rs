//! The functions of C11, C23, POSIX and glibc that allocate and free.
//!
//! **Unsafe.** Takes pointers from C, and exports names that the whole process calls.

use crate::next;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use craton_malloc::front;
use craton_malloc::sizes::{self, Claim};
use craton_os::process;

pub(crate) fn invalid() -> *mut c_void {
    process::set_errno(process::EINVAL);
    null_mut()
}

/// No version is longer: such a `size` was never set.
const MOST_COUNTS: usize = 4096;

/// Fields that only a newer program has become 0.
///
/// # Safety
/// `into` is null, or has `size` bytes.
pub(crate) unsafe fn write_counts<T>(into: *mut T, size: usize, counts: T) -> c_int {
    if into.is_null() || !(size_of::<T>()..=MOST_COUNTS).contains(&size) {
        process::set_errno(process::EINVAL);
        return -1;
    }
    // SAFETY: by the contract; at least as long as ours.
    unsafe {
        into.cast::<u8>().add(size_of::<T>()).write_bytes(0, size - size_of::<T>());
        into.write(counts);
    }
    0
}

pub(crate) fn no_memory() -> *mut c_void {
    process::set_errno(process::ENOMEM);
    null_mut()
}

/// C11 7.22.3.4.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    front::malloc(size).cast()
}

/// C11 7.22.3.3.
///
/// # Safety
/// The object is given up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(pointer: *mut c_void) {
    // SAFETY: by the contract.
    unsafe {
        if !front::try_free(pointer.cast()) {
            next::free_slowly(pointer, "free");
        }
    }
}

/// C11 7.22.3.2.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => front::calloc(bytes).cast(),
        None => no_memory(),
    }
}

/// C11 7.22.3.5. As in glibc, a size of 0 frees the object and gives null.
///
/// # Safety
/// The pointer is given up if the result is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: by the contract.
    unsafe { resize("realloc", pointer, size) }
}

/// # Safety
/// As [`realloc`].
unsafe fn resize(call: &'static str, pointer: *mut c_void, size: usize) -> *mut c_void {
    if size == 0 && !pointer.is_null() {
        // SAFETY: by the contract.
        unsafe {
            if !front::try_free(pointer.cast()) {
                next::free_slowly(pointer, call);
            }
        }
        return null_mut();
    }
    // SAFETY: by the contract.
    unsafe {
        match front::realloc(pointer.cast(), size) {
            Ok(new) => new.cast(),
            Err(misuse) => next::realloc(call, pointer, size, misuse),
        }
    }
}

/// POSIX 2024.
///
/// # Safety
/// As [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: by the contract.
        Some(bytes) => unsafe { resize("reallocarray", pointer, bytes) },
        None => no_memory(),
    }
}

/// C11 7.22.3.1; `EINVAL` if not a power of two, as glibc 2.38; of any size.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return invalid();
    }
    front::aligned(align, size).cast()
}

/// Rounds up an alignment, as glibc.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => front::aligned(align, size).cast(),
        None => invalid(),
    }
}

/// POSIX; `errno` and, on failure, `*place` stay unchanged.
///
/// # Safety
/// `place` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return process::EINVAL;
    }
    let saved = process::errno();
    let object = front::aligned(align, size);
    if object.is_null() {
        // Programs rely on it, although not promised.
        process::set_errno(process::ENOMEM);
        return process::ENOMEM;
    }
    process::set_errno(saved);
    // SAFETY: by the contract.
    unsafe { place.write(object.cast()) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    front::aligned(process::page_size(), size).cast()
}

/// Whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = process::page_size();
    match size.max(1).checked_next_multiple_of(page) {
        Some(bytes) => front::aligned(page, bytes).cast(),
        None => no_memory(),
    }
}

/// # Safety
/// Any pointer; no free at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(pointer: *mut c_void) -> usize {
    // SAFETY: by the contract.
    match unsafe { front::usable_size(pointer.cast()) } {
        Ok(bytes) => bytes,
        // SAFETY: by the contract.
        Err(misuse) => unsafe { next::usable_size(pointer, misuse) },
    }
}

/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(pointer: *mut c_void) {
    // SAFETY: by the contract.
    unsafe {
        if !front::try_free(pointer.cast()) {
            next::free_slowly(pointer, "cfree");
        }
    }
}

/// C23 7.24.3.4.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(pointer: *mut c_void, size: usize) {
    // SAFETY: by the contract.
    unsafe {
        if !sizes::try_free(pointer.cast(), size) {
            next::free_sized_slowly(pointer, "free_sized", Claim { size: Some(size), align: 1, resized: true });
        }
    }
}

/// C23 7.24.3.5.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(pointer: *mut c_void, align: usize, size: usize) {
    // SAFETY: by the contract.
    unsafe {
        if !sizes::try_free_aligned(pointer.cast(), size, align) {
            let claim = Claim { size: Some(size), align, resized: false };
            next::free_sized_slowly(pointer, "free_aligned_sized", claim);
        }
    }
}
