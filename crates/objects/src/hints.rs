//! Hints: how the program will use an object. Each is a heap ([`crate::heaps`]).

use crate::heaps::{BUILT_IN, Heaps, Place};

/// Hardly used: on small pages, which the system can reclaim.
pub const COLD: u32 = 1;
/// In constant use: on hugepages even in a small heap.
pub const HOT: u32 = 2;
/// Many that stay: they do not keep others' hugepages alive.
pub const DENSE: u32 = 4;
/// Freed soon, together: their hugepages come free whole.
pub const SHORT_LIVED: u32 = 8;

const KINDS: [(u32, &[u8], Place); BUILT_IN] = [
    (COLD, b"cold", Place::Small),
    (HOT, b"hot", Place::Huge),
    (DENSE, b"dense", Place::Apart),
    (SHORT_LIVED, b"short-lived", Place::Apart),
];

pub fn are_valid(hints: u32) -> bool {
    hints == 0 || KINDS.iter().any(|k| k.0 == hints)
}

impl Heaps {
    pub fn of_hint(&self, hint: u32) -> Option<usize> {
        let which = KINDS.iter().position(|k| k.0 == hint)?;
        let (_, name, place) = KINDS[which];
        self.built_in(which, name, place)
    }
}
