//! rpmalloc (crate `rpmalloc-sys` with `preload`: it starts with the process and sees threads begin and end).
//!
//! **What.** The archive that `rpmalloc.so` is linked from. Its functions get their C names in `names.ld`, without a call
//! in between; `valloc` and `pvalloc`, which it lacks, are here and end in a jump to `rpmemalign`. Without them glibc's
//! would answer, and rpmalloc's `free` would get memory that it does not know.
//! **Failure.** Null, with `errno` set by rpmalloc; `pvalloc` also for a size that cannot be rounded up.
//! **Unsafe.** Exported under C names, and the functions of a C library.

use rpmalloc_sys::rpmemalign;
use std::ffi::c_void;

/// The page size of x86-64.
const PAGE_BYTES: usize = 4096;

/// `size` bytes that begin on a page.
// SAFETY: no other item of this library has the name, which the C library's `valloc` gives up to whoever defines it.
#[unsafe(no_mangle)]
extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: asks nothing of its caller but an alignment that is a power of two.
    unsafe { rpmemalign(PAGE_BYTES, size) }
}

/// Whole pages for `size` bytes, beginning on a page.
// SAFETY: as `valloc`.
#[unsafe(no_mangle)]
extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // A size near the end of the address space stays what it is, and is refused as such.
    let whole = size.checked_next_multiple_of(PAGE_BYTES).unwrap_or(size);
    // SAFETY: as above.
    unsafe { rpmemalign(PAGE_BYTES, whole) }
}
