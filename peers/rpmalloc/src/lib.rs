//! The archive for `rpmalloc.so`: crate `rpmalloc-sys` with `preload`; `names.ld` gives its
//! functions their C names.
//!
//! `valloc` and `pvalloc` are here: glibc's would return memory that rpmalloc's `free` does not
//! know.
//!
//! **Unsafe.** Exported under C names.

use rpmalloc_sys::rpmemalign;
use std::ffi::c_void;

/// Of x86-64.
const PAGE_BYTES: usize = 4096;

// SAFETY: the C library lets others define it.
#[unsafe(no_mangle)]
extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the alignment is a power of two.
    unsafe { rpmemalign(PAGE_BYTES, size) }
}

// SAFETY: as `valloc`.
#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // A size near the end of the address space stays, and is refused.
    let whole = size.checked_next_multiple_of(PAGE_BYTES).unwrap_or(size);
    // SAFETY: as above.
    unsafe { rpmemalign(PAGE_BYTES, whole) }
}
