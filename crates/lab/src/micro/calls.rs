//! The functions that the loops call: the C library's, or empty ones.
//!
//! **What.** [`Calls`] are the functions that patterns need. [`System`] has those of the process,
//! which a preloaded library replaces. [`Empty`] has functions that do nothing, for the cost of the
//! loop.
//!
//! **Cost.** One call each. [`System`]'s goes through the global offset table, as in C with
//! `-fno-plt`; by default C has one more jump. The empty `malloc` is two instructions, the empty
//! `free` one: in assembly, so that the compiler neither inlines nor adds to them.
//!
//! **Unsafe.** Calls the C library's allocator, and defines functions by assembly.

use super::pattern::MOST_BYTES;
use std::arch::naked_asm;
use std::cell::UnsafeCell;
use std::ffi::CStr;

/// The instructions of an empty `malloc` and `free` themselves.
pub const EMPTY_PAIR_INSTRUCTIONS: f64 = 3.0;

/// An allocator's functions.
///
/// # Safety
///
/// `malloc`, `calloc` and `realloc` return null, or memory of at least the requested size, aligned
/// to 8 or more, writable until it is freed. Memory of [`Empty`] is the same each time.
pub unsafe trait Calls {
    fn malloc(size: usize) -> *mut u8;
    /// `calloc(1, size)`.
    fn calloc(size: usize) -> *mut u8;
    /// `realloc(address, size)`.
    ///
    /// # Safety
    ///
    /// `address` comes from these functions and was not freed.
    unsafe fn realloc(address: *mut u8, size: usize) -> *mut u8;
    /// `free(address)`.
    ///
    /// # Safety
    ///
    /// As for `realloc`.
    unsafe fn free(address: *mut u8);
    /// `malloc_usable_size(address)`.
    ///
    /// # Safety
    ///
    /// As for `realloc`.
    unsafe fn usable_size(address: *mut u8) -> usize;
}

pub struct System;

// SAFETY: the C standard's promises for these functions; 8 bytes or more have that alignment.
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
        // SAFETY: the caller's promise.
        unsafe { libc::realloc(address.cast(), size).cast() }
    }

    #[inline(always)]
    unsafe fn free(address: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { libc::free(address.cast()) }
    }

    #[inline(always)]
    unsafe fn usable_size(address: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { libc::malloc_usable_size(address.cast()) }
    }
}

/// The file of the process's `malloc`, as the dynamic linker names it; empty if unknown.
pub fn malloc_from() -> String {
    // SAFETY: an all-zero `Dl_info` is valid, with null pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: reads the address only, and fills in a live structure.
    let found = unsafe { libc::dladdr(libc::malloc as *const libc::c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return String::new();
    }
    // SAFETY: the linker's string, valid while the library is loaded: for ever here.
    unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned()
}

/// Functions that do nothing. For one thread at a time: all objects are the same memory.
pub struct Empty;

/// The object that all the empty functions return.
#[repr(align(4096))]
#[expect(dead_code, reason = "the assembly below has its address")]
struct Object(UnsafeCell<[u8; MOST_BYTES]>);

// SAFETY: reached through raw pointers only, by the one thread that `Empty` requires.
unsafe impl Sync for Object {}

static OBJECT: Object = Object(UnsafeCell::new([0; MOST_BYTES]));

/// Returns the object.
#[unsafe(naked)]
extern "C" fn alloc_empty(_: usize) -> *mut u8 {
    naked_asm!("lea rax, [rip + {}]", "ret", sym OBJECT)
}

/// As [`alloc_empty`], with two arguments.
#[unsafe(naked)]
extern "C" fn realloc_empty(_: *mut u8, _: usize) -> *mut u8 {
    naked_asm!("lea rax, [rip + {}]", "ret", sym OBJECT)
}

/// Does nothing.
#[unsafe(naked)]
extern "C" fn free_empty(_: *mut u8) {
    naked_asm!("ret")
}

/// Returns the address as a number.
#[unsafe(naked)]
extern "C" fn measure(_: *mut u8) -> usize {
    naked_asm!("mov rax, rdi", "ret")
}

// SAFETY: the object is as large as the largest size, and aligned to a page.
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
