//! All forms of C++17 [new.delete]. A nothrow form never calls the new handler: only the C++
//! runtime could catch its exception.
//!
//! **Unsafe.** Takes C++'s pointers, exports its names.

use crate::next;
use core::ffi::c_void;
use craton_malloc::front::{self, family};
use craton_malloc::sizes::{self, Claim};
use craton_os::{symbol, weak};

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) use portable::{new_failed, sized_new_failed};
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
pub(crate) use x86_64::{new_failed, sized_new_failed};

const DEFAULT_ALIGN: usize = 16;

extern "C" fn retry(size: usize, align: usize) -> *mut c_void {
    // The runtime's handler does not say if for an array.
    front::aligned_by::<{ family::ANY }>(align, size).cast()
}

extern "C" fn new_handler() -> usize {
    let mut get = weak!("_ZSt15get_new_handlerv");
    if get == 0 {
        get = symbol::find(c"_ZSt15get_new_handlerv");
    }
    if get == 0 {
        return 0;
    }
    // SAFETY: the function's type.
    unsafe { core::mem::transmute::<usize, extern "C" fn() -> usize>(get)() }
}

macro_rules! new {
    ($name:ident, $family:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(size: usize) -> *mut c_void {
            let object = front::malloc_by::<{ family::$family }>(size);
            // SAFETY: `new_failed` may throw in its last step, through no Rust frame.
            if object.is_null() { unsafe { new_failed(size, DEFAULT_ALIGN) } } else { object.cast() }
        }
    };
}

macro_rules! new_aligned {
    ($name:ident, $family:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name(size: usize, align: usize) -> *mut c_void {
            let object = front::aligned_by::<{ family::$family }>(align, size);
            // SAFETY: as in `new`.
            if object.is_null() { unsafe { new_failed(size, align) } } else { object.cast() }
        }
    };
}

macro_rules! delete {
    ($name:ident($($extra:ty),*), $call:literal) => {
        /// # Safety
        /// The object is given up.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pointer: *mut c_void $(, _: $extra)*) {
            // SAFETY: by the contract.
            unsafe {
                if !front::try_free(pointer.cast()) {
                    next::free_slowly(pointer, $call);
                }
            }
        }
    };
}

macro_rules! delete_sized {
    ($name:ident, $name_aligned:ident, $call:literal) => {
        /// # Safety
        /// The object is given up.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pointer: *mut c_void, size: usize) {
            // SAFETY: by the contract.
            unsafe {
                if !sizes::try_free(pointer.cast(), size) {
                    next::free_sized_slowly(pointer, $call, Claim { size: Some(size), align: 1, resized: false });
                }
            }
        }

        /// # Safety
        /// As `$name`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name_aligned(pointer: *mut c_void, size: usize, align: usize) {
            // SAFETY: by the contract.
            unsafe {
                if !sizes::try_free_aligned(pointer.cast(), size, align) {
                    next::free_sized_slowly(pointer, $call, Claim { size: Some(size), align, resized: false });
                }
            }
        }
    };
}

macro_rules! delete_aligned {
    ($name:ident($($extra:ty),*), $call:literal) => {
        /// # Safety
        /// The object is given up.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pointer: *mut c_void, align: usize $(, _: $extra)*) {
            // SAFETY: by the contract.
            unsafe {
                let lies_so = align.is_power_of_two() && pointer as usize & (align - 1) == 0;
                if !lies_so || !front::try_free(pointer.cast()) {
                    next::free_sized_slowly(pointer, $call, Claim { size: None, align, resized: false });
                }
            }
        }
    };
}

new!(_Znwm, NEW);
new!(_Znam, NEW_ARRAY);
new_aligned!(_ZnwmSt11align_val_t, NEW_ALIGNED);
new_aligned!(_ZnamSt11align_val_t, NEW_ARRAY_ALIGNED);

#[unsafe(no_mangle)]
extern "C" fn _ZnwmRKSt9nothrow_t(size: usize, _: *const c_void) -> *mut c_void {
    front::malloc_by::<{ family::NEW }>(size).cast()
}

#[unsafe(no_mangle)]
extern "C" fn _ZnamRKSt9nothrow_t(size: usize, _: *const c_void) -> *mut c_void {
    front::malloc_by::<{ family::NEW_ARRAY }>(size).cast()
}

#[unsafe(no_mangle)]
extern "C" fn _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, align: usize, _: *const c_void) -> *mut c_void {
    front::aligned_by::<{ family::NEW_ALIGNED }>(align, size).cast()
}

#[unsafe(no_mangle)]
extern "C" fn _ZnamSt11align_val_tRKSt9nothrow_t(size: usize, align: usize, _: *const c_void) -> *mut c_void {
    front::aligned_by::<{ family::NEW_ARRAY_ALIGNED }>(align, size).cast()
}

delete!(_ZdlPv(), "operator delete");
delete!(_ZdaPv(), "operator delete[]");
delete_sized!(_ZdlPvm, _ZdlPvmSt11align_val_t, "operator delete");
delete_sized!(_ZdaPvm, _ZdaPvmSt11align_val_t, "operator delete[]");
delete_aligned!(_ZdlPvSt11align_val_t(), "operator delete");
delete_aligned!(_ZdaPvSt11align_val_t(), "operator delete[]");
delete!(_ZdlPvRKSt9nothrow_t(*const c_void), "operator delete");
delete!(_ZdaPvRKSt9nothrow_t(*const c_void), "operator delete[]");
delete_aligned!(_ZdlPvSt11align_val_tRKSt9nothrow_t(*const c_void), "operator delete");
delete_aligned!(_ZdaPvSt11align_val_tRKSt9nothrow_t(*const c_void), "operator delete[]");
