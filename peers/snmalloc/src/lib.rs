//! The archive for `snmalloc.so`: crate `snmalloc-sys` with `libc-api`, malloc and its family under
//! names with `sn_`.
//!
//! **What.** `names.ld` gives them their C names, without a call in between. One function is here:
//! the registration of a thread's end, which snmalloc takes from libstdc++. Every program would
//! load libstdc++ for it, over half a millisecond, though glibc has the same under another name.
//!
//! **Failure.** As glibc's: non-zero without memory for the registration.
//!
//! **Unsafe.** Defines a C++ runtime's function, which calls the C library's.

use snmalloc_sys as _;
use std::ffi::{c_int, c_void};

type Destructor = unsafe extern "C" fn(*mut c_void);

// SAFETY: glibc's function with glibc's types.
unsafe extern "C" {
    fn __cxa_thread_atexit_impl(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int;
}

/// Registers `destructor` for `object` at this thread's end.
///
/// # Safety
/// As the C++ ABI says: `destructor` can be called with `object` as long as `library` is loaded.
// SAFETY: not exported from the library (exports.map), in which nothing else has the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cxa_thread_atexit(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int {
    // SAFETY: the same call with the same contract, and the caller keeps it.
    unsafe { __cxa_thread_atexit_impl(destructor, object, library) }
}
