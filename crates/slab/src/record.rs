//! What a cache knows of one slab.
//!
//! **State.** 32 bytes in a table indexed by the slab's first page; zeros are a page that begins no slab.
//!
//! **Unsafe.** Declares that zeros are a valid record.

use core::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering::Relaxed};
use craton_base::{Pages, Zeroed};

/// The record of one slab, or of a large object, which is a slab of one object.
///
/// The fields are atomics because records of different caches lie in one table, not because two threads would use one
/// record at a time: the owner's lock orders all accesses.
#[derive(Default, Debug)]
#[repr(C, align(32))]
pub struct SlabRecord {
    free: AtomicUsize,
    next: AtomicU32,
    prev: AtomicU32,
    pages: AtomicU32,
    used: AtomicU16,
    carved: AtomicU16,
}

// SAFETY: atomics of zero are valid.
unsafe impl Zeroed for SlabRecord {}

macro_rules! field {
    ($get:ident, $set:ident, $field:ident, $t:ty) => {
        pub(crate) fn $get(&self) -> $t {
            self.$field.load(Relaxed)
        }
        pub(crate) fn $set(&self, value: $t) {
            self.$field.store(value, Relaxed)
        }
    };
}

impl SlabRecord {
    field!(free, set_free, free, usize);
    field!(next, set_next, next, u32);
    field!(prev, set_prev, prev, u32);
    field!(used, set_used, used, u16);
    field!(carved, set_carved, carved, u16);

    /// How many objects of the slab have ever been handed out: the first so many of its places.
    pub fn cut_objects(&self) -> u16 {
        self.carved()
    }

    /// Length of the span; 0 when no span begins here.
    pub fn pages(&self) -> Pages {
        Pages(self.pages.load(Relaxed))
    }

    /// Notes that a span of so many pages begins here, or, with 0, that none does any more.
    pub fn set_pages(&self, pages: Pages) {
        self.pages.store(pages.0, Relaxed);
    }

    /// Makes the record that of a fresh slab.
    pub(crate) fn begin(&self, pages: Pages) {
        self.set_free(0);
        self.set_used(0);
        self.set_carved(0);
        self.set_pages(pages);
    }
}
