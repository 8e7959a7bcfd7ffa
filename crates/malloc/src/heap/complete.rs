//! Complete slabs that classes keep, and how they come back to all.
//!
//! **What.** A class that has missed slabs it gave back keeps as many complete ones, so that a program which frees and allocates in
//! swings takes no lock but its own shard's. To the page heap they are out. They go back before the heap would grow, when
//! memory is to be released, and once a second as far as nobody needed them.
//!
//! **From.** Bonwick94 §3.4, §3.2.
//!
//! **Threads.** Who holds a class's lock and needs memory only tries the others'.
//!
//! **Units.** Pages.

use super::{CLASSES, Heap, Marked};
use crate::hooks::Hooks;
use crate::{background, size_class};
use craton_base::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_base::{Clock, Floor, Pages};
use craton_slab::SlabCache;

/// Pages of complete slabs that a class may keep in each shard: 1 MiB. More would cost programs that swing between sizes more memory than it saves time.
const MOST: u32 = 128;

/// All classes of a shard keep no more than half a MiB and one part in 32 of what is in use.
const ALWAYS: u32 = 64;
const PART: u32 = 32;

/// What the classes of one shard keep.
#[repr(align(64))]
pub(super) struct Complete {
    pages: AtomicU32,
    /// How often slabs became complete and were used again.
    uses: AtomicU32,
    /// A bit for each class that keeps some.
    classes: [AtomicU64; CLASSES.div_ceil(64)],
}

impl Complete {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub(super) const NONE: Self = Self {
        pages: AtomicU32::new(0),
        uses: AtomicU32::new(0),
        classes: [const { AtomicU64::new(0) }; CLASSES.div_ceil(64)],
    };

    /// A class, whose lock the caller holds, keeps `now` slabs where it kept `before`. Who only ever uses these leaves the page heap alone, and
    /// with it what is done in passing there: now and then it is thought of here.
    #[inline]
    fn note(&self, class: usize, before: u32, now: u32) {
        if before == now {
            return;
        }
        let uses = self.uses.load(Relaxed).wrapping_add(1);
        self.uses.store(uses, Relaxed);
        if uses.is_multiple_of(background::USES) {
            background::note_time();
        }
        self.pages.fetch_add(now.wrapping_sub(before).wrapping_mul(size_class::geometry(class).pages.0), Relaxed);
        let (word, bit) = (&self.classes[(class - 1) / 64], 1 << ((class - 1) % 64));
        if now == 0 {
            word.fetch_and(!bit, Relaxed);
        } else if before == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// The classes that keep some.
    fn classes(&self) -> impl Iterator<Item = usize> {
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

/// A class's slabs at first.
pub(super) fn fresh(class: usize) -> SlabCache {
    let geometry = size_class::geometry(class);
    SlabCache::keeping(geometry, (MOST / geometry.pages.0) as u16)
}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Uses a class's slabs, locked, and counts what they keep from then on.
    #[inline]
    pub(super) fn counted<R>(
        &self,
        home: usize,
        class: usize,
        slabs: &mut SlabCache,
        f: impl FnOnce(&mut SlabCache) -> R,
    ) -> R {
        let complete = &self.shards[home].complete;
        slabs.let_keep(complete.pages.load(Relaxed) < ALWAYS + self.in_use().0 / PART);
        let before = slabs.complete();
        let result = f(slabs);
        complete.note(class, before, slabs.complete());
        result
    }

    /// Pages of complete slabs that are kept.
    pub(crate) fn complete_pages(&self) -> Pages {
        Pages(self.shards().iter().map(|shard| shard.complete.pages.load(Relaxed)).sum())
    }

    /// Gives all complete slabs back, but for those of classes whose lock somebody has.
    #[cold]
    pub(super) fn give_complete(&self) {
        self.for_complete(|slabs, source| slabs.give_complete(u32::MAX, &self.layout().records, source));
    }

    /// Gives those complete slabs back that nobody needed since the last call.
    pub(super) fn give_idle(&self) {
        self.for_complete(|slabs, source| slabs.give_idle(&self.layout().records, source));
    }

    fn for_complete(&self, mut f: impl FnMut(&mut SlabCache, &mut Marked<'_, F, C, H>)) {
        for (home, shard) in self.shards().iter().enumerate() {
            for class in shard.complete.classes() {
                if let Some(mut slabs) = self.try_slabs(home, class) {
                    let mut source = Marked { heap: self, home, class };
                    self.counted(home, class, &mut slabs, |slabs| f(slabs, &mut source));
                }
            }
        }
    }
}
