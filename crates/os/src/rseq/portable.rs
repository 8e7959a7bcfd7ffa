//! Without assembly there is never a registration.
//!
//! **Unsafe.** The real ones' signatures.

use super::{Place, Rseq, Table};
use core::ptr::null_mut;

pub(super) const SUPPORTED: bool = false;
pub(super) const SIGNATURE: u32 = 0;

/// # Safety
/// None.
pub(super) unsafe fn field(_at: isize) -> i32 {
    -1
}

/// # Safety
/// None.
pub(super) unsafe fn pop(_area: isize, _number: isize, _table: &Table, _place: Place) -> *mut u8 {
    null_mut()
}

/// # Safety
/// None.
pub(super) unsafe fn push(_area: isize, _number: isize, _table: &Table, _place: Place, _pointer: *mut u8) -> bool {
    false
}

/// # Safety
/// None.
pub(super) unsafe fn pop_counted(_rseq: &Rseq, _at: usize, _owner: usize) -> *mut u8 {
    null_mut()
}

/// # Safety
/// None.
pub(super) unsafe fn push_counted(_rseq: &Rseq, _at: usize, _pointer: *mut u8) -> bool {
    false
}

/// # Safety
/// None.
pub(super) unsafe fn pop_many(_rseq: &Rseq, _at: usize, _owner: usize, _into: &mut [*mut u8]) -> usize {
    0
}

/// # Safety
/// None.
pub(super) unsafe fn push_many(_rseq: &Rseq, _at: usize, _from: &[*mut u8]) -> usize {
    0
}
