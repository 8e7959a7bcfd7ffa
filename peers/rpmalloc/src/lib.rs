//! The archive for `rpmalloc.so`: crate `rpmalloc-sys` with `preload`, which starts with the
//! process and tracks threads.
//!
//! **What.** `names.ld` gives its functions their C names, without a call in between. It lacks
//! `valloc` and `pvalloc`, which are here and end in a jump to `rpmemalign`: glibc's would return
//! memory that rpmalloc's `free` does not know.
//!
//! **Failure.** Null, with `errno` set by rpmalloc; `pvalloc` also for a size that cannot be
//! rounded up.
//!
//! **Unsafe.** Exported under C names, with the functions of a C library.

use rpmalloc_sys::rpmemalign;
use std::ffi::c_void;

/// The page size of x86-64.
const PAGE_BYTES: usize = 4096;

/// `size` bytes that begin on a page.
// SAFETY: no other item of this library has the name, which the C library lets others define.
#[unsafe(no_mangle)]
extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: its only requirement is an alignment that is a power of two.
    unsafe { rpmemalign(PAGE_BYTES, size) }
}

/// Whole pages for `size` bytes, beginning on a page.
// SAFETY: as `valloc`.
#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // A size near the end of the address space stays, and is refused as such.
    let whole = size.checked_next_multiple_of(PAGE_BYTES).unwrap_or(size);
    // SAFETY: as above.
    unsafe { rpmemalign(PAGE_BYTES, whole) }
}
