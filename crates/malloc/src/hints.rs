//! Objects of which the program knows how they will be used.
//!
//! **What.** Each hint is a heap of the library's own ([`crate::heaps`]), whose slabs lie on hugepages that no other object shares.
//! So objects of one kind share lines, pages and hugepages with their like alone:
//! - [`COLD`]: hardly used. On small pages, which the system can take one by one; hugepages with used objects stay full of those.
//! - [`HOT`]: in constant use. On hugepages, in a small heap too: few entries of the TLB reach all of them.
//! - [`DENSE`]: many that stay. They do not keep alive the hugepages of what comes and goes.
//! - [`SHORT_LIVED`]: gone soon, together. Their hugepages come free whole.
//!
//! **Cost.** A lock for each object; plain requests go through a cache without one.
//!
//! **Failure.** Null and `ENOMEM`.

use crate::front;
use crate::heaps::{BUILT_IN, Place, api};

/// Hardly ever used.
pub const COLD: u32 = 1;
/// In constant use.
pub const HOT: u32 = 2;
/// One of many that stay.
pub const DENSE: u32 = 4;
/// Gone soon.
pub const SHORT_LIVED: u32 = 8;

const KINDS: [(u32, &[u8], Place); BUILT_IN] = [
    (COLD, b"cold", Place::Small),
    (HOT, b"hot", Place::Huge),
    (DENSE, b"dense", Place::Apart),
    (SHORT_LIVED, b"short-lived", Place::Apart),
];

/// Whether [`alloc`] takes these hints: none, or one of them.
pub fn are_valid(hints: u32) -> bool {
    hints == 0 || KINDS.iter().any(|k| k.0 == hints)
}

/// `size` bytes at a multiple of `align` (a power of two, up to 2 MiB with a hint), placed by the hint.
pub fn alloc(size: usize, align: usize, hints: u32) -> *mut u8 {
    let Some(which) = KINDS.iter().position(|k| k.0 == hints) else { return front::aligned(align, size) };
    let (_, name, place) = KINDS[which];
    match api::built_in(which, name, place).map(|heap| api::alloc(heap, size, align, false)) {
        Some(Ok(object)) => object,
        _ => api::refuse(),
    }
}
