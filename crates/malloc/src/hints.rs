//! Objects with hints in the process ([`craton_objects::hints`]).

use crate::front;
use crate::heaps::api;
use crate::start::set_up;
use crate::statics::HEAPS;

pub use craton_objects::hints::{COLD, DENSE, HOT, SHORT_LIVED, are_valid};

/// `align` is a power of two, with a hint up to 2 MiB; null means `ENOMEM`.
pub fn alloc(size: usize, align: usize, hints: u32) -> *mut u8 {
    if hints == 0 {
        return front::aligned(align, size);
    }
    let heap = if set_up() { HEAPS.of_hint(hints) } else { None };
    match heap.map(|heap| api::alloc(heap, size, align, false)) {
        Some(Ok(object)) => object,
        _ => front::with_errno(core::ptr::null_mut(), 0),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
