//! No exception passes through Rust, so without a handler, or if it throws, the program ends.
//!
//! **Unsafe.** Calls the program's handler by its address.

use crate::sized::Sized;
use core::ffi::c_void;
use craton_os::Line;

/// # Safety
/// None; the assembly twin's signature.
pub(crate) unsafe fn new_failed(size: usize, align: usize) -> *mut c_void {
    loop {
        let handler = super::new_handler();
        if handler == 0 {
            Line::new().text("craton: operator new(").number(size as u64).text("): no memory").abort();
        }
        // SAFETY: a new handler's type.
        unsafe { core::mem::transmute::<usize, extern "C" fn()>(handler)() };
        let object = super::retry(size, align);
        if !object.is_null() {
            return object;
        }
    }
}

/// # Safety
/// As [`new_failed`].
pub(crate) unsafe fn sized_new_failed(size: usize, align: usize, good: usize) -> Sized {
    // SAFETY: by the contract.
    Sized::new(unsafe { new_failed(size, align) }, good)
}
