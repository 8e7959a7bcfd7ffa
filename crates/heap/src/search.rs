//! When to look for a slab of another class, and whose.
//!
//! **What.** A search costs locks that are tried, so it pauses for longer and longer while it finds nothing. It asks the classes
//! in turn, from the last donor on, and spares those that took slabs themselves a moment ago.
//!
//! **Threads.** Advice alone: a lost update costs a search more or less.

use crate::size_class::{self, CLASSES};
use craton_base::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use craton_base::{PAGE_SIZE, Pages};

/// A heap with fewer pages in use is left alone: 4 MiB.
const LEAST_PAGES: u32 = if cfg!(loom) { 1 } else { ((4 << 20) / PAGE_SIZE) as u32 };
/// So many requests of a class go without a look at the most after looks that found nothing.
const LONGEST_PAUSE: u8 = 16;

/// A class that took none of the last slabs, one for each so many pages in use, has what it needs; one that takes some would
/// refill the gaps of its own. A program whose sizes all come and go together gains nothing by morphing, and each free on
/// such a slab is dear.
const REST_PART: u32 = 32;

/// The logarithm of the longest slab of several objects, in pages.
const LONGEST_LOG: usize = 5;

/// For each class the next one whose slabs are on the same spans; itself if there is none.
pub(crate) static NEXT: [u8; CLASSES + 1] = {
    let mut next = [0; CLASSES + 1];
    let mut last = [0; LONGEST_LOG + 1];
    // Twice around, so that each class knows one that comes before it.
    let mut i = 2 * CLASSES;
    while i > 0 {
        let class = (i - 1) % CLASSES + 1;
        let g = size_class::geometry(class);
        // A slab is found from within by its length, which must be a power of two for that.
        if g.is_single() || !g.pages.0.is_power_of_two() {
            next[class] = class as u8;
        } else {
            let last = &mut last[g.pages.0.trailing_zeros() as usize];
            next[class] = *last;
            *last = class as u8;
        }
        i -= 1;
    }
    next
};

/// A class with slabs of several objects on spans of so many pages; 0 if there is none.
pub(crate) static FIRST: [u8; LONGEST_LOG + 1] = {
    let mut first = [0; LONGEST_LOG + 1];
    let mut class = CLASSES;
    while class > 0 {
        let g = size_class::geometry(class);
        if !g.is_single() && g.pages.0.is_power_of_two() {
            first[g.pages.0.trailing_zeros() as usize] = class as u8;
        }
        class -= 1;
    }
    first
};

/// Whether a class has slabs of several objects on spans of so many pages.
pub(crate) fn has_span(class: usize, pages: Pages) -> bool {
    let g = size_class::geometry(class);
    g.pages == pages && !g.is_single()
}

/// How a class's looks went.
struct Luck {
    /// Requests that go without a look.
    pause: AtomicU8,
    /// How long the last pause was.
    last_pause: AtomicU8,
}

/// Where a heap looks for slabs that could morph. All zeros at first.
pub struct Search {
    /// Pages of the heap that were in use when last seen.
    pages: AtomicU32,
    /// The class that gave a slab last, or was asked last; 0 at first.
    pub(crate) donor: AtomicU32,
    /// The class that gave half of a slab last, or was asked for one last; 0 at first.
    pub(crate) half_donor: AtomicU32,
    /// The shard that is asked besides the home of who looks.
    pub(crate) shard: AtomicU32,
    /// Slabs that all classes took.
    taken: AtomicU32,
    /// How many that were when each class took its last one.
    taken_at: [AtomicU32; CLASSES + 1],
    luck: [Luck; CLASSES + 1],
}

impl Search {
    /// At the beginning.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub const NEW: Self = Self {
        pages: AtomicU32::new(0),
        donor: AtomicU32::new(0),
        half_donor: AtomicU32::new(0),
        shard: AtomicU32::new(0),
        taken: AtomicU32::new(0),
        taken_at: [const { AtomicU32::new(0) }; CLASSES + 1],
        luck: [const { Luck { pause: AtomicU8::new(0), last_pause: AtomicU8::new(0) } }; CLASSES + 1],
    };

    /// The next look is at the slabs of one class and shard.
    #[cfg(loom)]
    pub fn look_at(&self, shard: usize, class: usize) {
        self.donor.store(class as u32, Relaxed);
        self.half_donor.store(class as u32, Relaxed);
        self.shard.store(shard as u32, Relaxed);
    }

    /// Notes how many pages of the heap are in use.
    pub fn note_in_use(&self, pages: Pages) {
        self.pages.store(pages.0, Relaxed);
    }

    /// Notes that a class takes a slab.
    pub(crate) fn note_taken(&self, class: usize) {
        let taken = self.taken.fetch_add(1, Relaxed) + 1;
        self.taken_at[class].store(taken, Relaxed);
    }

    /// Whether a class does without new slabs while others take some.
    pub(crate) fn is_at_rest(&self, class: usize) -> bool {
        self.taken.load(Relaxed).wrapping_sub(self.taken_at[class].load(Relaxed))
            >= self.pages.load(Relaxed) / REST_PART
    }

    /// Whether this request of a class, whose lock the caller holds, may look.
    pub(crate) fn is_due(&self, class: usize) -> bool {
        if self.pages.load(Relaxed) < LEAST_PAGES {
            return false;
        }
        let pause = &self.luck[class].pause;
        let left = pause.load(Relaxed);
        pause.store(left.saturating_sub(1), Relaxed);
        left == 0
    }

    /// Notes how a look for a class, whose lock the caller holds, ended.
    pub(crate) fn note(&self, class: usize, found: bool) {
        let Luck { pause, last_pause } = &self.luck[class];
        let next = if found { 0 } else { (2 * last_pause.load(Relaxed) + 1).min(LONGEST_PAUSE) };
        last_pause.store(next, Relaxed);
        pause.store(next, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
