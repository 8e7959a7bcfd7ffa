//! The span cache: short free spans in front of the page heap, without a lock.
//!
//! **State.** A shard for each CPU is a cache line of 16 slots: a span's first page plus 1, or 0.
//! To the page heap the spans are in use; its owner drains the cache before a release. P10: an
//! exchange empties a slot before it is filled.
//! **Cost.** At most four slots of one line, one exchange; at most 320 KiB in a used shard.

use craton_base::atomic::{AtomicU32, Ordering};
use craton_base::{Density, PageId, PageRange, Pages};

const SHARDS: usize = if cfg!(loom) { 2 } else { 64 };
/// Of 1, 2, 4 and 8 pages.
const DEPTHS: [usize; 4] = [4, 2, 1, 1];
const STARTS: [usize; 4] = [0, 4, 6, 7];
const SLOTS: usize = 8;

#[repr(align(64))]
struct Shard {
    dense: [AtomicU32; SLOTS],
    sparse: [AtomicU32; SLOTS],
}

/// All zeros: empty.
pub struct SpanCache {
    shards: [Shard; SHARDS],
}

fn length(pages: Pages) -> Option<usize> {
    let log = pages.0.trailing_zeros() as usize;
    (pages.0.is_power_of_two() && log < DEPTHS.len()).then_some(log)
}

impl SpanCache {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with.
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

    /// At a multiple of `align`, with old contents.
    pub fn pop(&self, cpu: usize, pages: Pages, align: Pages, density: Density) -> Option<PageRange> {
        let log = length(pages)?;
        self.slots(cpu, log, density).iter().find_map(|slot| {
            let seen = slot.load(Ordering::Relaxed);
            if seen == 0 || !(seen - 1).is_multiple_of(align.0) {
                return None;
            }
            // ORDERING: pairs with the Release in `put`: the last user's writes precede the next
            // one's.
            let taken = slot.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed);
            taken.is_ok().then(|| PageRange::new(PageId(seen - 1), pages))
        })
    }

    /// `false`: too long or no room.
    #[must_use]
    pub fn put(&self, cpu: usize, span: PageRange, density: Density) -> bool {
        let Some(log) = length(span.len) else { return false };
        self.slots(cpu, log, density).iter().any(|slot| {
            // ORDERING: pairs with the Acquire in `pop` and in `drain`.
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, span.first.0 + 1, Ordering::Release, Ordering::Relaxed).is_ok()
        })
    }

    pub fn drain(&self, mut free: impl FnMut(PageRange, Density)) {
        for shard in &self.shards {
            for (slots, density) in [(&shard.dense, Density::Dense), (&shard.sparse, Density::Sparse)] {
                for (log, (start, depth)) in STARTS.into_iter().zip(DEPTHS).enumerate() {
                    for slot in &slots[start..start + depth] {
                        if slot.load(Ordering::Relaxed) == 0 {
                            continue;
                        }
                        // ORDERING: pairs with the Release in `put`.
                        let seen = slot.swap(0, Ordering::Acquire);
                        if seen != 0 {
                            free(PageRange::new(PageId(seen - 1), Pages(1 << log)), density);
                        }
                    }
                }
            }
        }
    }

    /// Approximate while threads use it.
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
