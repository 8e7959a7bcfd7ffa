//! The functions that the loops call: the C library's, or empty ones. [`System`]'s calls go through
//! the global offset table, as with `-fno-plt`; by default C has one more jump.
//!
//! **Unsafe.** Calls the C library's allocator, and defines functions by assembly.

use super::pattern::MOST_BYTES;
use std::arch::naked_asm;
use std::cell::UnsafeCell;
use std::ffi::CStr;

pub const EMPTY_PAIR_INSTRUCTIONS: f64 = 3.0;

/// # Safety
/// `malloc`, `calloc` and `realloc` return null, or memory of the size, aligned to 8 or more,
/// writable until freed; of [`Empty`] the same each time.
pub unsafe trait Calls {
    fn malloc(size: usize) -> *mut u8;
    fn calloc(size: usize) -> *mut u8;
    /// # Safety
    /// A live object of these functions.
    unsafe fn realloc(address: *mut u8, size: usize) -> *mut u8;
    /// # Safety
    /// As `realloc`.
    unsafe fn free(address: *mut u8);
    /// # Safety
    /// As `realloc`.
    unsafe fn usable_size(address: *mut u8) -> usize;
}

pub struct System;

// SAFETY: C's promises; 8 bytes or more have that alignment.
unsafe impl Calls for System {
    #[inline(always)]
    fn malloc(size: usize) -> *mut u8 {
        // SAFETY: takes any size.
        unsafe { libc::malloc(size).cast() }
    }

    #[inline(always)]
    fn calloc(size: usize) -> *mut u8 {
        // SAFETY: takes any size.
        unsafe { libc::calloc(1, size).cast() }
    }

    #[inline(always)]
    unsafe fn realloc(address: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { libc::realloc(address.cast(), size).cast() }
    }

    #[inline(always)]
    unsafe fn free(address: *mut u8) {
        // SAFETY: by the contract.
        unsafe { libc::free(address.cast()) }
    }

    #[inline(always)]
    unsafe fn usable_size(address: *mut u8) -> usize {
        // SAFETY: by the contract.
        unsafe { libc::malloc_usable_size(address.cast()) }
    }
}

pub fn malloc_from() -> String {
    // SAFETY: zeros are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: reads no memory, fills a live structure.
    let found = unsafe { libc::dladdr(libc::malloc as *const libc::c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return String::new();
    }
    // SAFETY: the linker's string; the library stays loaded.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// For one thread at a time: all objects are the same memory.
pub struct Empty;

#[repr(align(4096))]
#[expect(dead_code, reason = "the assembly below has its address")]
struct Object(UnsafeCell<[u8; MOST_BYTES]>);

// SAFETY: reached by raw pointers, by one thread.
unsafe impl Sync for Object {}

static OBJECT: Object = Object(UnsafeCell::new([0; MOST_BYTES]));

#[unsafe(naked)]
extern "C" fn alloc_empty(_: usize) -> *mut u8 {
    naked_asm!("lea rax, [rip + {}]", "ret", sym OBJECT)
}

#[unsafe(naked)]
extern "C" fn realloc_empty(_: *mut u8, _: usize) -> *mut u8 {
    naked_asm!("lea rax, [rip + {}]", "ret", sym OBJECT)
}

#[unsafe(naked)]
extern "C" fn free_empty(_: *mut u8) {
    naked_asm!("ret")
}

#[unsafe(naked)]
extern "C" fn measure(_: *mut u8) -> usize {
    naked_asm!("mov rax, rdi", "ret")
}

// SAFETY: as large as the largest size, aligned to a page.
unsafe impl Calls for Empty {
    #[inline(always)]
    fn malloc(size: usize) -> *mut u8 {
        alloc_empty(size)
    }

    #[inline(always)]
    fn calloc(size: usize) -> *mut u8 {
        alloc_empty(size)
    }

    #[inline(always)]
    unsafe fn realloc(address: *mut u8, size: usize) -> *mut u8 {
        realloc_empty(address, size)
    }

    #[inline(always)]
    unsafe fn free(address: *mut u8) {
        free_empty(address);
    }

    #[inline(always)]
    unsafe fn usable_size(address: *mut u8) -> usize {
        measure(address)
    }
}

#[cfg(test)]
mod tests;
