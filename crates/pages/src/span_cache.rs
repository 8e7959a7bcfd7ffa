//! Short free spans in front of the page heap, so that the common request takes no lock.
//!
//! **What.** A shard for each processor holds a few spans of 1, 2, 4 and 8 pages, dense and sparse
//! ones apart. To the page heap they are out. Who looks after the heap empties the shards
//! ([`SpanCache::drain`]) before memory is released.
//!
//! **State.** A shard is one cache line of 16 slots; a slot holds the first page of a span plus 1,
//! or 0.
//!
//! **Invariants.** P10: a span is in one slot at most, since a slot is emptied by exchange and
//! filled only when empty.
//!
//! **Threads.** Any thread may use any shard at any time; one that was moved to another processor
//! in between loses nothing but locality.
//!
//! **Cost.** A request: the processor's number, at most four slots of one line, one atomic
//! exchange. Memory that is held back: at most 320 KiB in each shard that was used.

use craton_base::atomic::{AtomicU32, Ordering};
use craton_base::{Density, PageId, PageRange, Pages};

/// Shards; processors beyond share them.
const SHARDS: usize = if cfg!(loom) { 2 } else { 64 };
/// Slots for spans of 1, 2, 4 and 8 pages.
const DEPTHS: [usize; 4] = [4, 2, 1, 1];
/// Where the slots of a length begin.
const STARTS: [usize; 4] = [0, 4, 6, 7];
const SLOTS: usize = 8;

/// One processor's spans.
#[repr(align(64))]
struct Shard {
    dense: [AtomicU32; SLOTS],
    sparse: [AtomicU32; SLOTS],
}

/// Spans for all processors. All zeros are an empty cache.
pub struct SpanCache {
    shards: [Shard; SHARDS],
}

/// The logarithm of a length that is cached.
fn length(pages: Pages) -> Option<usize> {
    let log = pages.0.trailing_zeros() as usize;
    (pages.0.is_power_of_two() && log < DEPTHS.len()).then_some(log)
}

impl SpanCache {
    /// Without spans.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new cache.
    pub const EMPTY: Self = Self {
        shards: [const {
            Shard { dense: [const { AtomicU32::new(0) }; SLOTS], sparse: [const { AtomicU32::new(0) }; SLOTS] }
        }; SHARDS],
    };

    fn slots(&self, cpu: usize, log: usize, density: Density) -> &[AtomicU32] {
        let shard = &self.shards[cpu % SHARDS];
        let slots = match density {
            Density::Dense => &shard.dense,
            Density::Sparse => &shard.sparse,
        };
        &slots[STARTS[log]..STARTS[log] + DEPTHS[log]]
    }

    /// Takes a span of `pages`, whose first is a multiple of `align`; its contents are
    /// whatever its last user left.
    pub fn take(&self, cpu: usize, pages: Pages, align: Pages, density: Density) -> Option<PageRange> {
        let log = length(pages)?;
        self.slots(cpu, log, density).iter().find_map(|slot| {
            let seen = slot.load(Ordering::Relaxed);
            if seen == 0 || !(seen - 1).is_multiple_of(align.0) {
                return None;
            }
            // ORDERING: Acquire pairs with the Release in `put`: what the last user did to the
            // span's pages and to its metadata comes before what the next one does.
            let taken = slot.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed);
            taken.is_ok().then(|| PageRange::new(PageId(seen - 1), pages))
        })
    }

    /// Keeps a span that came back; `false` if it is too long or there is no room, and it has to go
    /// to the page heap.
    #[must_use]
    pub fn put(&self, cpu: usize, span: PageRange, density: Density) -> bool {
        let Some(log) = length(span.len) else { return false };
        self.slots(cpu, log, density).iter().any(|slot| {
            // ORDERING: Release pairs with the Acquire in `take` and in `drain`.
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, span.first.0 + 1, Ordering::Release, Ordering::Relaxed).is_ok()
        })
    }

    /// Takes every span out and hands it to `give`.
    pub fn drain(&self, mut give: impl FnMut(PageRange, Density)) {
        for shard in &self.shards {
            for (slots, density) in [(&shard.dense, Density::Dense), (&shard.sparse, Density::Sparse)] {
                for (log, (start, depth)) in STARTS.into_iter().zip(DEPTHS).enumerate() {
                    for slot in &slots[start..start + depth] {
                        if slot.load(Ordering::Relaxed) == 0 {
                            continue;
                        }
                        // ORDERING: Acquire pairs with the Release in `put`.
                        let seen = slot.swap(0, Ordering::Acquire);
                        if seen != 0 {
                            give(PageRange::new(PageId(seen - 1), Pages(1 << log)), density);
                        }
                    }
                }
            }
        }
    }

    /// Pages in the cache, as far as can be seen while others use it.
    pub fn pages(&self) -> Pages {
        let mut pages = 0;
        for shard in &self.shards {
            for slots in [&shard.dense, &shard.sparse] {
                for (log, (start, depth)) in STARTS.into_iter().zip(DEPTHS).enumerate() {
                    let held = slots[start..start + depth].iter().filter(|s| s.load(Ordering::Relaxed) != 0).count();
                    pages += (held as u32) << log;
                }
            }
        }
        Pages(pages)
    }
}

#[cfg(test)]
mod tests;
