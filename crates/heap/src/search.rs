//! When to search for another class's slab, and which class to ask.
//!
//! A search costs try-locks, so it backs off while it finds nothing. In steady state no slab
//! morphs, since each free on a morphed one is slow. A lost update costs one search more or less.

use crate::size_class::{self, CLASSES};
// Not loom's: no invariant depends on it.
use core::sync::atomic::AtomicU32 as Hint;
use craton_base::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use craton_base::{PAGE_SIZE, Pages};

/// Smaller heaps do not search: 4 MiB.
const LEAST_PAGES: u32 = if cfg!(loom) { 1 } else { ((4 << 20) / PAGE_SIZE) as u32 };
/// In requests of a class.
const LONGEST_PAUSE: u8 = 16;

/// A class gives slabs if it took none of the last 1/32 of the pages in use. Others refill their
/// slabs' gaps: morphing gains nothing.
const REST_PART: u32 = 32;

/// The part of a peak that a second forgets.
const FORGET_PART: u32 = 64;

struct Luck {
    /// In requests.
    pause: AtomicU8,
    last_pause: AtomicU8,
}

pub struct Search {
    pages: AtomicU32,
    /// The last donor, or class asked; 0 at first.
    pub(crate) donor: AtomicU32,
    /// Asked besides the home.
    pub(crate) shard: AtomicU32,
    /// Pages of slabs.
    taken: AtomicU32,
    /// `taken` at the class's last slab.
    taken_at: [AtomicU32; CLASSES + 1],
    slabs: [Hint; CLASSES + 1],
    peaks: [Hint; CLASSES + 1],
    luck: [Luck; CLASSES + 1],
}

impl Search {
    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub const NEW: Self = Self {
        pages: AtomicU32::new(0),
        donor: AtomicU32::new(0),
        shard: AtomicU32::new(0),
        taken: AtomicU32::new(0),
        taken_at: [const { AtomicU32::new(0) }; CLASSES + 1],
        slabs: [const { Hint::new(0) }; CLASSES + 1],
        peaks: [const { Hint::new(0) }; CLASSES + 1],
        luck: [const { Luck { pause: AtomicU8::new(0), last_pause: AtomicU8::new(0) } }; CLASSES + 1],
    };

    /// For models.
    #[cfg(loom)]
    pub fn look_at(&self, shard: usize, class: usize) {
        self.donor.store(class as u32, Relaxed);
        self.shard.store(shard as u32, Relaxed);
    }

    pub fn note_in_use(&self, pages: Pages) {
        self.pages.store(pages.0, Relaxed);
    }

    pub(crate) fn note_taken(&self, class: usize) {
        let pages = size_class::geometry(class).pages.0;
        let taken = self.taken.fetch_add(pages, Relaxed).wrapping_add(pages);
        self.taken_at[class].store(taken, Relaxed);
    }

    pub(crate) fn grew(&self, class: usize) {
        let slabs = self.slabs[class].fetch_add(1, Relaxed) + 1;
        self.peaks[class].fetch_max(slabs, Relaxed);
    }

    pub(crate) fn shrank(&self, class: usize) {
        self.slabs[class].fetch_sub(1, Relaxed);
    }

    /// Whether one slab more would pass the recent peak.
    pub(crate) fn is_growth(&self, class: usize) -> bool {
        self.slabs[class].load(Relaxed) >= self.peaks[class].load(Relaxed)
    }

    /// Each second.
    pub(crate) fn tick(&self) {
        for (slabs, peak) in self.slabs.iter().zip(&self.peaks) {
            let old = peak.load(Relaxed);
            let now = (old - old.div_ceil(FORGET_PART)).max(slabs.load(Relaxed));
            _ = peak.compare_exchange(old, now, Relaxed, Relaxed);
        }
    }

    /// Whether it has slabs of several objects and takes none while others do.
    pub(crate) fn gives(&self, class: usize) -> bool {
        // Models do not see the hint, and would miss orders of steps.
        let has_slabs = cfg!(loom) || self.slabs[class].load(Relaxed) > 0;
        has_slabs && self.is_at_rest(class) && !size_class::geometry(class).is_single()
    }

    fn is_at_rest(&self, class: usize) -> bool {
        self.taken.load(Relaxed).wrapping_sub(self.taken_at[class].load(Relaxed))
            >= self.pages.load(Relaxed) / REST_PART
    }

    /// The caller holds the class's lock.
    pub(crate) fn is_due(&self, class: usize) -> bool {
        if self.pages.load(Relaxed) < LEAST_PAGES {
            return false;
        }
        let pause = &self.luck[class].pause;
        let left = pause.load(Relaxed);
        pause.store(left.saturating_sub(1), Relaxed);
        left == 0
    }

    pub(crate) fn note(&self, class: usize, found: bool) {
        let Luck { pause, last_pause } = &self.luck[class];
        let next = if found { 0 } else { (2 * last_pause.load(Relaxed) + 1).min(LONGEST_PAUSE) };
        last_pause.store(next, Relaxed);
        pause.store(next, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
