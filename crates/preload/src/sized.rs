//! Requests that return sizes, come in batches, or carry hints.
//!
//! **From.** Sizes returned: P0901; `__hot_cold_t` and the C++ names: LLVM.
//!
//! **Unsafe.** Takes pointers from C, and exports names that compilers call.

use crate::c::{invalid, no_memory};
use crate::cxx::{new_failed, sized_new_failed};
use crate::next;
use core::ffi::{c_uint, c_void};
use core::slice;
use craton_malloc::front::{self, family};
use craton_malloc::{batch, hints, sizes};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sized {
    pointer: *mut c_void,
    size: usize,
}

impl Sized {
    pub(crate) fn new(pointer: *mut c_void, size: usize) -> Self {
        Self { pointer, size }
    }
}

const ALIGN: usize = 16;
const COLD_BELOW: u8 = 128;

#[unsafe(no_mangle)]
pub extern "C" fn craton_good_size(size: usize) -> usize {
    sizes::good_size(size, 1)
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_good_size_aligned(size: usize, align: usize) -> usize {
    if align.is_power_of_two() { sizes::good_size(size, align) } else { 0 }
}

fn at_least(size: usize, align: usize) -> Sized {
    let (pointer, size) = sizes::alloc_at_least(size, align);
    Sized::new(pointer.cast(), size)
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_alloc_at_least(size: usize) -> Sized {
    at_least(size, ALIGN)
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_aligned_alloc_at_least(align: usize, size: usize) -> Sized {
    if align.is_power_of_two() { at_least(size, align) } else { Sized::new(invalid(), 0) }
}

/// # Safety
/// `out` has room for `count` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_alloc_batch(size: usize, count: usize, out: *mut *mut c_void) -> usize {
    // SAFETY: by the contract.
    unsafe { batch::alloc(size, count, out.cast()) }
}

/// # Safety
/// `pointers` has `count` entries, given up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn craton_free_batch(pointers: *const *mut c_void, count: usize) {
    if count == 0 {
        return;
    }
    // SAFETY: by the contract.
    unsafe {
        batch::free(slice::from_raw_parts(pointers.cast(), count), |pointer, misuse| {
            next::free_refused("craton_free_batch", pointer.cast(), misuse);
        });
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn craton_alloc_hinted(size: usize, align: usize, hint: c_uint) -> *mut c_void {
    if !align.is_power_of_two() || !hints::are_valid(hint) {
        return invalid();
    }
    if size > isize::MAX as usize {
        return no_memory();
    }
    hints::alloc(size, align, hint).cast()
}

fn by_temperature<const FAMILY: u8>(size: usize, align: usize, temperature: u8) -> *mut c_void {
    // A heap aligns to at most a hugepage.
    if temperature < COLD_BELOW && align <= craton_base::HUGEPAGE_SIZE {
        hints::alloc(size, align, hints::COLD).cast()
    } else {
        front::aligned_by::<FAMILY>(align, size).cast()
    }
}

macro_rules! or_failed {
    ($pointer:expr, $size:expr, $align:expr) => {{
        let (pointer, size, align): (*mut c_void, usize, usize) = ($pointer, $size, $align);
        if pointer.is_null() {
            // SAFETY: throws, if at all, in its last step, through no Rust frame.
            unsafe { sized_new_failed(size, align, sizes::good_size(size, align)) }
        } else {
            // SAFETY: the object is new.
            Sized::new(pointer, unsafe { sizes::usable(pointer.cast(), size, align) })
        }
    }};
}

#[unsafe(no_mangle)]
extern "C" fn __size_returning_new(size: usize) -> Sized {
    or_failed!(front::malloc_by::<{ family::NEW }>(size).cast(), size, ALIGN)
}

#[unsafe(no_mangle)]
extern "C" fn __size_returning_new_aligned(size: usize, align: usize) -> Sized {
    or_failed!(front::aligned_by::<{ family::NEW_ALIGNED }>(align, size).cast(), size, align)
}

#[unsafe(no_mangle)]
extern "C" fn __size_returning_new_hot_cold(size: usize, temperature: u8) -> Sized {
    or_failed!(by_temperature::<{ family::NEW }>(size, ALIGN, temperature), size, ALIGN)
}

#[unsafe(no_mangle)]
extern "C" fn __size_returning_new_aligned_hot_cold(size: usize, align: usize, temperature: u8) -> Sized {
    or_failed!(by_temperature::<{ family::NEW_ALIGNED }>(size, align, temperature), size, align)
}

macro_rules! new_by_temperature {
    ($($name:ident, $name_nothrow:ident, $name_aligned:ident, $name_aligned_nothrow:ident, $family:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(size: usize, temperature: u8) -> *mut c_void {
            let object = by_temperature::<{ family::$family }>(size, ALIGN, temperature);
            // SAFETY: as in `or_failed`.
            if object.is_null() { unsafe { new_failed(size, ALIGN) } } else { object }
        }
        #[unsafe(no_mangle)]
        extern "C" fn $name_nothrow(size: usize, _: *const c_void, temperature: u8) -> *mut c_void {
            by_temperature::<{ family::$family }>(size, ALIGN, temperature)
        }
        #[unsafe(no_mangle)]
        extern "C" fn $name_aligned(size: usize, align: usize, temperature: u8) -> *mut c_void {
            let object = by_temperature::<{ family::aligned(family::$family) }>(size, align, temperature);
            // SAFETY: as in `or_failed`.
            if object.is_null() { unsafe { new_failed(size, align) } } else { object }
        }
        #[unsafe(no_mangle)]
        extern "C" fn $name_aligned_nothrow(size: usize, align: usize, _: *const c_void, temperature: u8) -> *mut c_void {
            by_temperature::<{ family::aligned(family::$family) }>(size, align, temperature)
        }
    )*};
}

new_by_temperature! {
    _Znwm12__hot_cold_t, _ZnwmRKSt9nothrow_t12__hot_cold_t,
    _ZnwmSt11align_val_t12__hot_cold_t, _ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t, NEW;
    _Znam12__hot_cold_t, _ZnamRKSt9nothrow_t12__hot_cold_t,
    _ZnamSt11align_val_t12__hot_cold_t, _ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t, NEW_ARRAY;
}
