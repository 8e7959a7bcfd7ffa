//! Hints: how the program will use an object.
//!
//! **What.** Each hint is a heap of the library ([`crate::heaps`]): objects of one kind share
//! lines, pages and hugepages only with their like.
//! - [`COLD`]: hardly used. On small pages, which the system can reclaim one by one.
//! - [`HOT`]: in constant use. On hugepages even in a small heap, for few TLB entries.
//! - [`DENSE`]: many that stay. They do not keep others' hugepages alive.
//! - [`SHORT_LIVED`]: freed soon, together. Their hugepages come free whole.
//!
//! **Cost.** A lock for each object; plain requests go through a cache without one.

use crate::heaps::{BUILT_IN, Heaps, Place};

/// Hardly ever used.
pub const COLD: u32 = 1;
/// In constant use.
pub const HOT: u32 = 2;
/// One of many that stay.
pub const DENSE: u32 = 4;
/// Freed soon.
pub const SHORT_LIVED: u32 = 8;

const KINDS: [(u32, &[u8], Place); BUILT_IN] = [
    (COLD, b"cold", Place::Small),
    (HOT, b"hot", Place::Huge),
    (DENSE, b"dense", Place::Apart),
    (SHORT_LIVED, b"short-lived", Place::Apart),
];

/// Whether `hints` is 0 or one hint.
pub fn are_valid(hints: u32) -> bool {
    hints == 0 || KINDS.iter().any(|k| k.0 == hints)
}

impl Heaps {
    /// The handle of a hint's heap; `None` without memory.
    pub fn of_hint(&self, hint: u32) -> Option<usize> {
        let which = KINDS.iter().position(|k| k.0 == hint)?;
        let (_, name, place) = KINDS[which];
        self.built_in(which, name, place)
    }
}
