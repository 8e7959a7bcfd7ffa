//! C++'s `operator new` and `operator delete`, in all their forms (C++17 [new.delete]).
//!
//! **What.** Without memory a throwing form calls the program's new handler until there is some, or
//! throws `std::bad_alloc` if there is no handler. A nothrow form returns null at once: the handler
//! may throw, and only the C++ runtime could catch that.
//!
//! **Unsafe.** Takes pointers from C++, and exports its mangled names.

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

/// C++'s own alignment of `operator new` without one.
const DEFAULT_ALIGN: usize = 16;

/// One more attempt, between two calls of the new handler.
extern "C" fn retry(size: usize, align: usize) -> *mut c_void {
    // For an array or not: the runtime's handler does not tell.
    front::aligned_by::<{ family::ANY }>(align, size).cast()
}

/// The program's new handler, or null.
extern "C" fn new_handler() -> usize {
    let mut get = weak!("_ZSt15get_new_handlerv");
    if get == 0 {
        get = symbol::find(c"_ZSt15get_new_handlerv");
    }
    if get == 0 {
        return 0;
    }
    // SAFETY: `std::get_new_handler()` takes nothing and returns a function pointer.
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
        /// The program no longer uses the object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pointer: *mut c_void $(, _: $extra)*) {
            // SAFETY: the program gives the object up.
            unsafe {
                if !front::try_free(pointer.cast()) {
                    next::free_slowly(pointer, $call);
                }
            }
        }
    };
}

/// The forms with a size: a size other than the object's is an error.
macro_rules! delete_sized {
    ($name:ident, $name_aligned:ident, $call:literal) => {
        /// # Safety
        /// The program no longer uses the object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pointer: *mut c_void, size: usize) {
            // SAFETY: the program gives the object up.
            unsafe {
                if !sizes::try_free(pointer.cast(), size) {
                    next::free_sized_slowly(pointer, $call, Claim { size: Some(size), align: 1, resized: false });
                }
            }
        }

        /// # Safety
        /// The program no longer uses the object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name_aligned(pointer: *mut c_void, size: usize, align: usize) {
            // SAFETY: the program gives the object up.
            unsafe {
                if !sizes::try_free_aligned(pointer.cast(), size, align) {
                    next::free_sized_slowly(pointer, $call, Claim { size: Some(size), align, resized: false });
                }
            }
        }
    };
}

/// The forms that know the alignment alone.
macro_rules! delete_aligned {
    ($name:ident($($extra:ty),*), $call:literal) => {
        /// # Safety
        /// The program no longer uses the object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(pointer: *mut c_void, align: usize $(, _: $extra)*) {
            // SAFETY: the program gives the object up.
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

/// `operator new(size, nothrow)`.
#[unsafe(no_mangle)]
extern "C" fn _ZnwmRKSt9nothrow_t(size: usize, _: *const c_void) -> *mut c_void {
    front::malloc_by::<{ family::NEW }>(size).cast()
}

/// `operator new[](size, nothrow)`.
#[unsafe(no_mangle)]
extern "C" fn _ZnamRKSt9nothrow_t(size: usize, _: *const c_void) -> *mut c_void {
    front::malloc_by::<{ family::NEW_ARRAY }>(size).cast()
}

/// `operator new(size, align, nothrow)`.
#[unsafe(no_mangle)]
extern "C" fn _ZnwmSt11align_val_tRKSt9nothrow_t(size: usize, align: usize, _: *const c_void) -> *mut c_void {
    front::aligned_by::<{ family::NEW_ALIGNED }>(align, size).cast()
}

/// `operator new[](size, align, nothrow)`.
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
