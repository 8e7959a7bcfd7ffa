//! Counts of the complete slabs that a shard's classes keep (Bonwick94 §3.4, §3.2).
//!
//! They let a program whose use swings take only its shard's locks. They go back before the heap
//! grows, on a release, and if unneeded for a second ([`crate::spans`]).

use crate::size_class::{self, CLASSES};
use craton_base::Pages;
use craton_base::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Between two reports.
pub const REUSES: u32 = 16;

/// 512 KiB and 1/32 of the pages in use.
const ALWAYS: u32 = 64;
const PART: u32 = 32;

#[repr(align(64))]
pub(crate) struct Complete {
    pages: AtomicU32,
    uses: AtomicU32,
    /// A bit for each class that keeps some.
    classes: [AtomicU64; CLASSES.div_ceil(64)],
}

impl Complete {
    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub(super) const NONE: Self = Self {
        pages: AtomicU32::new(0),
        uses: AtomicU32::new(0),
        classes: [const { AtomicU64::new(0) }; CLASSES.div_ceil(64)],
    };

    #[inline]
    pub(crate) fn pages(&self) -> Pages {
        Pages(self.pages.load(Relaxed))
    }

    #[inline]
    pub(crate) fn has_room(&self, in_use: Pages) -> bool {
        self.pages.load(Relaxed) < ALWAYS + in_use.0 / PART
    }

    /// The class is locked. True once in [`REUSES`] reuses.
    #[inline]
    pub(crate) fn update(&self, class: usize, before: u32, now: u32) -> bool {
        if before == now {
            return false;
        }
        let uses = self.uses.load(Relaxed).wrapping_add(1);
        self.uses.store(uses, Relaxed);
        self.pages.fetch_add(now.wrapping_sub(before).wrapping_mul(size_class::geometry(class).pages.0), Relaxed);
        let (word, bit) = (&self.classes[(class - 1) / 64], 1 << ((class - 1) % 64));
        if now == 0 {
            word.fetch_and(!bit, Relaxed);
        } else if before == 0 {
            word.fetch_or(bit, Relaxed);
        }
        uses.is_multiple_of(REUSES)
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = usize> {
        self.classes.iter().enumerate().flat_map(|(at, word)| {
            let mut left = word.load(Relaxed);
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(64 * at + bit + 1)
            })
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
