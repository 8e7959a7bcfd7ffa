//! `errno` after a request.

use core::ptr::null_mut;
use craton_os::process;

/// Restores `errno`, whatever failed on the way.
pub(crate) fn with_errno(object: *mut u8, saved: i32) -> *mut u8 {
    process::set_errno(if object.is_null() { process::ENOMEM } else { saved });
    object
}

pub(crate) fn no_memory() -> *mut u8 {
    with_errno(null_mut(), 0)
}
