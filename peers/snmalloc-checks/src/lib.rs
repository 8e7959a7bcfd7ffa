//! The archive for `snmalloc-checks.so`: as the peer `snmalloc`, with its checks (feature `check`
//! of `snmalloc-sys`).
//!
//! **Unsafe.** Defines a C++ runtime's function, which calls the C library's.

use snmalloc_sys as _;
use std::ffi::{c_int, c_void};

type Destructor = unsafe extern "C" fn(*mut c_void);

// SAFETY: glibc's types.
unsafe extern "C" {
    fn __cxa_thread_atexit_impl(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int;
}

/// # Safety
/// `destructor` can be called with `object` as long as `library` is loaded.
// SAFETY: not exported (exports.map).
#[unsafe(no_mangle)]
unsafe extern "C" fn __cxa_thread_atexit(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int {
    // SAFETY: the same contract.
    unsafe { __cxa_thread_atexit_impl(destructor, object, library) }
}
