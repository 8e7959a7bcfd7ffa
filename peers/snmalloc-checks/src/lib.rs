//! The archive for `snmalloc-checks.so`: snmalloc with its checks (feature `check` of
//! `snmalloc-sys`), the hardened form of the peer `snmalloc`.
//!
//! **What.** As that peer's: `names.ld` has the C names, and glibc registers a thread's end,
//! without libstdc++.
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
