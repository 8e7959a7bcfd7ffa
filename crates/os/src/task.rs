//! Tasks past the C library's threads, for interposers of `clone`.
//!
//! **Unsafe.** Calls the C library with the caller's arguments.

use core::ffi::{c_int, c_void};

pub use libc::{CLONE_SETTLS, CLONE_VFORK, CLONE_VM};

pub const VFORK: i32 = libc::SYS_vfork as i32;

/// Arguments: the function's, parent's place for the number, thread pointer, child's place.
///
/// # Safety
/// As the C library's function.
pub unsafe fn clone(function: *mut c_void, stack: *mut c_void, flags: c_int, arguments: [*mut c_void; 4]) -> c_int {
    let [argument, parent, pointer, child] = arguments;
    // SAFETY: by the contract.
    unsafe { __clone(function, stack, flags, argument, parent, pointer, child) }
}

// SAFETY: glibc's signature; the last three arguments are optional.
unsafe extern "C" {
    fn __clone(
        function: *mut c_void,
        stack: *mut c_void,
        flags: c_int,
        argument: *mut c_void,
        parent: *mut c_void,
        pointer: *mut c_void,
        child: *mut c_void,
    ) -> c_int;
}
