//! A failed throwing `operator new` without assembly: an exception cannot pass through Rust, so a
//! program whose handler throws, or that has none, ends here.
//!
//! **Unsafe.** Calls the program's handler by its address.

use crate::sized::Sized;
use core::ffi::c_void;
use craton_os::Line;

/// Allocates with the help of the new handler, or ends the process.
///
/// # Safety
/// No requirement; the signature is that of the assembly twin.
pub(crate) unsafe fn new_failed(size: usize, align: usize) -> *mut c_void {
    loop {
        let handler = super::new_handler();
        if handler == 0 {
            Line::new().text("craton: operator new(").number(size as u64).text("): no memory").abort();
        }
        // SAFETY: a new handler takes and returns nothing.
        unsafe { core::mem::transmute::<usize, extern "C" fn()>(handler)() };
        let object = super::retry(size, align);
        if !object.is_null() {
            return object;
        }
    }
}

/// The same, for a pointer with its size.
///
/// # Safety
/// As [`new_failed`].
pub(crate) unsafe fn sized_new_failed(size: usize, align: usize, good: usize) -> Sized {
    // SAFETY: by the contract.
    Sized::new(unsafe { new_failed(size, align) }, good)
}
