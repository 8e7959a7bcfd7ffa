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

/// No version's struct of counts is longer: a longer `size` was never set.
const MOST_COUNTS: usize = 4096;

/// Writes counts into the program's struct of `size` bytes, with 0 in fields that only a newer
/// program has. Returns 0, or -1 with `EINVAL`.
///
/// # Safety
/// `into` is null, or has room for `size` bytes.
pub(crate) unsafe fn write_counts<T>(into: *mut T, size: usize, counts: T) -> c_int {
    if into.is_null() || !(size_of::<T>()..=MOST_COUNTS).contains(&size) {
        process::set_errno(process::EINVAL);
        return -1;
    }
    // SAFETY: by the contract; the struct is at least as long as ours.
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

/// C11 7.22.3.4. A size of 0 returns a unique pointer.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    front::malloc(size).cast()
}

/// C11 7.22.3.3.
///
/// # Safety
/// The program no longer uses the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(pointer: *mut c_void) {
    // SAFETY: the program gives the pointer up.
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
/// If the result is another pointer than null, the program no longer uses the old one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as the program's call.
    unsafe { resize("realloc", pointer, size) }
}

/// # Safety
/// As [`realloc`].
unsafe fn resize(call: &'static str, pointer: *mut c_void, size: usize) -> *mut c_void {
    if size == 0 && !pointer.is_null() {
        // SAFETY: the program gives the object up.
        unsafe {
            if !front::try_free(pointer.cast()) {
                next::free_slowly(pointer, call);
            }
        }
        return null_mut();
    }
    // SAFETY: as the program's call.
    unsafe {
        match front::realloc(pointer.cast(), size) {
            Ok(new) => new.cast(),
            Err(misuse) => next::realloc(call, pointer, size, misuse),
        }
    }
}

/// POSIX 2024: `realloc` of a product that must not overflow.
///
/// # Safety
/// As [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(pointer: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as the program's call.
        Some(bytes) => unsafe { resize("reallocarray", pointer, bytes) },
        None => no_memory(),
    }
}

/// C11 7.22.3.1. `EINVAL` if not a power of two (glibc 2.38); the size need not be a multiple.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        return invalid();
    }
    front::aligned(align, size).cast()
}

/// As glibc: rounds an alignment up to a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => front::aligned(align, size).cast(),
        None => invalid(),
    }
}

/// POSIX: returns the error; `errno` and, on failure, `*place` stay unchanged.
///
/// # Safety
/// `place` is a valid place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return process::EINVAL;
    }
    let saved = process::errno();
    let object = front::aligned(align, size);
    if object.is_null() {
        // Programs rely on it, although only the result is promised.
        process::set_errno(process::ENOMEM);
        return process::ENOMEM;
    }
    process::set_errno(saved);
    // SAFETY: the caller's place.
    unsafe { place.write(object.cast()) };
    0
}

/// `size` bytes at the start of a machine page (BSD).
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    front::aligned(process::page_size(), size).cast()
}

/// Whole machine pages that hold `size` bytes (System V).
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = process::page_size();
    match size.max(1).checked_next_multiple_of(page) {
        Some(bytes) => front::aligned(page, bytes).cast(),
        None => no_memory(),
    }
}

/// Usable bytes of the object; 0 for null (glibc).
///
/// # Safety
/// Any pointer is allowed; an object must not be freed at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(pointer: *mut c_void) -> usize {
    // SAFETY: as the program's call.
    match unsafe { front::usable_size(pointer.cast()) } {
        Ok(bytes) => bytes,
        // SAFETY: as the program's call.
        Err(misuse) => unsafe { next::usable_size(pointer, misuse) },
    }
}

/// The old name of `free` (SunOS).
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(pointer: *mut c_void) {
    // SAFETY: as the program's call.
    unsafe {
        if !front::try_free(pointer.cast()) {
            next::free_slowly(pointer, "cfree");
        }
    }
}

/// C23 7.24.3.4: `free` with a size. A wrong size is an error if detected.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(pointer: *mut c_void, size: usize) {
    // SAFETY: as the program's call.
    unsafe {
        if !sizes::try_free(pointer.cast(), size) {
            next::free_sized_slowly(pointer, "free_sized", Claim { size: Some(size), align: 1, resized: true });
        }
    }
}

/// C23 7.24.3.5: `free` with size and alignment.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(pointer: *mut c_void, align: usize, size: usize) {
    // SAFETY: as the program's call.
    unsafe {
        if !sizes::try_free_aligned(pointer.cast(), size, align) {
            let claim = Claim { size: Some(size), align, resized: false };
            next::free_sized_slowly(pointer, "free_aligned_sized", claim);
        }
    }
}
