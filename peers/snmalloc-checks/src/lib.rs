//! snmalloc with its checks (feature `check` of `snmalloc-sys`), the hardened form of the peer `snmalloc`.
//!
//! **What.** As that peer's: C names come from `names.ld`, and the registration of a thread's end is
//! glibc's, so that libstdc++ need not be loaded.
//! **Failure.** As glibc's: non-zero when it has no memory for the registration.
//! **Unsafe.** A C++ runtime's function under its name, which is the C library's.

use snmalloc_sys as _;
use std::ffi::{c_int, c_void};

type Destructor = unsafe extern "C" fn(*mut c_void);

// SAFETY: glibc's function with glibc's types.
unsafe extern "C" {
    fn __cxa_thread_atexit_impl(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int;
}

/// Has `destructor` called with `object` when this thread ends.
///
/// # Safety
/// As the C++ ABI says: `destructor` can be called with `object` as long as `library` is loaded.
// SAFETY: not exported from the library (exports.map), in which nothing else has the name.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cxa_thread_atexit(destructor: Destructor, object: *mut c_void, library: *mut c_void) -> c_int {
    // SAFETY: the same call with the same contract, and the caller keeps it.
    unsafe { __cxa_thread_atexit_impl(destructor, object, library) }
}
