//! Long free spans in front of the page heap, so that a large object that comes and goes takes no
//! lock.
//!
//! **What.** A shard for each processor holds a few spans of up to [`LargeCache::LONGEST`] pages. A
//! request gets one that is just as long as asked for. To the page heap they are out. Who looks
//! after the heap empties the shards ([`LargeCache::drain`]) before memory is released, and once a
//! second.
//!
//! **State.** A shard is eight sets, each a cache line of eight slots, for lengths that are alike
//! modulo 8; a slot holds the length of a span, and above it its first page plus 1; or 0.
//!
//! **Invariants.** P10: a span is in one slot at most, since a slot is emptied and filled by
//! exchange of the whole of it.
//!
//! **Threads.** Any thread may use any shard at any time; one that was moved to another processor
//! in between loses nothing but locality.
//!
//! **Cost.** A request or a return: eight loads from one line, two atomic exchanges. Memory that is
//! held back: as much as the caller allows, by [`LargeCache::put`], and one span more for each
//! thread that is inside at the time.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_base::{PageId, PageRange, Pages};

/// Shards; processors beyond share them.
const SHARDS: usize = 64;
const SETS: usize = 8;
const SLOTS: usize = 8;

#[repr(align(64))]
struct Set([AtomicU64; SLOTS]);

/// Long spans for all processors. All zeros are an empty cache.
pub struct LargeCache {
    shards: [[Set; SETS]; SHARDS],
    held: AtomicU32,
    /// A bit for each shard that ever held something.
    used: AtomicU64,
}

fn pack(span: PageRange) -> u64 {
    (u64::from(span.first.0) + 1) << 32 | u64::from(span.len.0)
}

/// The span in a slot; `None` for an empty one.
fn unpack(slot: u64) -> Option<PageRange> {
    let first = (slot >> 32).checked_sub(1)?;
    Some(PageRange::new(PageId(first as u32), Pages(slot as u32)))
}

impl LargeCache {
    /// Without spans.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new cache.
    pub const EMPTY: Self = Self {
        shards: [const { [const { Set([const { AtomicU64::new(0) }; SLOTS]) }; SETS] }; SHARDS],
        held: AtomicU32::new(0),
        used: AtomicU64::new(0),
    };

    /// Pages of the longest span that is kept, 2 MiB. A longer one is used for so long
    /// that a lock does not count.
    pub const LONGEST: Pages = Pages(256);

    fn slots(&self, cpu: usize, len: Pages) -> &[AtomicU64; SLOTS] {
        &self.shards[cpu % SHARDS][len.0 as usize % SETS].0
    }

    /// Takes a span of `pages`, whose first is a multiple of `align`; its contents are
    /// whatever its last user left.
    pub fn take(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        self.slots(cpu, pages).iter().find_map(|slot| {
            let seen = slot.load(Ordering::Relaxed);
            let span = unpack(seen).filter(|s| s.len == pages && s.first.0.is_multiple_of(align.0))?;
            // ORDERING: Acquire pairs with the Release in `place`: what the last user did to the
            // span's pages and to its metadata comes before what the next one does.
            slot.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed).ok()?;
            self.held.fetch_sub(span.len.0, Ordering::Relaxed);
            Some(span)
        })
    }

    /// Takes the shortest span of more than `pages`, whose first is a multiple of `align`.
    pub fn take_longer(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        let fits = |s: &PageRange| s.len > pages && s.first.0.is_multiple_of(align.0);
        let slots = self.shards[cpu % SHARDS].iter().flat_map(|set| &set.0);
        let seen = slots.filter_map(|slot| {
            let seen = slot.load(Ordering::Relaxed);
            unpack(seen).filter(fits).map(|span| (span.len, slot, seen))
        });
        let (len, slot, seen) = seen.min_by_key(|(len, ..)| *len)?;
        // ORDERING: as in `take`.
        slot.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed).ok()?;
        self.held.fetch_sub(len.0, Ordering::Relaxed);
        unpack(seen)
    }

    /// Keeps a span that came back, if all that is kept is then no more than `most`, perhaps in
    /// place of another. Returns what has to go to the page heap.
    #[must_use]
    pub fn put(&self, cpu: usize, span: PageRange, most: Pages) -> Option<PageRange> {
        if span.len > Self::LONGEST {
            return Some(span);
        }
        // Counted first: what is in the slots is never more than what is counted.
        let held = self.held.fetch_add(span.len.0, Ordering::Relaxed) + span.len.0;
        let given = self.place(cpu, span, held.saturating_sub(most.0));
        if let Some(given) = given {
            self.held.fetch_sub(given.len.0, Ordering::Relaxed);
        }
        given
    }

    /// Finds a slot for a span. When none is empty, or `over` pages are too many, another span has
    /// to go, or this one.
    fn place(&self, cpu: usize, span: PageRange, over: u32) -> Option<PageRange> {
        let slots = self.slots(cpu, span.len);
        if over == 0 {
            for slot in slots {
                // ORDERING: Release pairs with the Acquire in `take` and in `drain`, and with the
                // one below.
                if slot.load(Ordering::Relaxed) == 0
                    && slot.compare_exchange(0, pack(span), Ordering::Release, Ordering::Relaxed).is_ok()
                {
                    self.note_used(cpu);
                    return None;
                }
            }
        }
        // The span freed last is the likeliest to be asked for next.
        let slot = &slots[span.first.0 as usize / 8 % SLOTS];
        let seen = slot.load(Ordering::Relaxed);
        // ORDERING: Acquire and Release as above: the old span leaves the slot, the new one comes.
        let swap = || slot.compare_exchange(seen, pack(span), Ordering::AcqRel, Ordering::Relaxed).is_ok();
        match unpack(seen) {
            Some(old) if old.len.0 >= over && swap() => Some(old),
            _ => Some(span),
        }
    }

    fn note_used(&self, cpu: usize) {
        let bit = 1 << (cpu % SHARDS);
        if self.used.load(Ordering::Relaxed) & bit == 0 {
            self.used.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Takes every span out and hands it to `give`.
    pub fn drain(&self, mut give: impl FnMut(PageRange)) {
        let mut used = self.used.load(Ordering::Relaxed);
        while used != 0 {
            self.drain_shard(used.trailing_zeros() as usize, &mut give);
            used &= used - 1;
        }
    }

    fn drain_shard(&self, shard: usize, give: &mut impl FnMut(PageRange)) {
        for slot in self.shards[shard].iter().flat_map(|set| &set.0) {
            if slot.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // ORDERING: Acquire pairs with the Release in `place`.
            if let Some(span) = unpack(slot.swap(0, Ordering::Acquire)) {
                self.held.fetch_sub(span.len.0, Ordering::Relaxed);
                give(span);
            }
        }
    }

    /// Pages in the cache, as far as can be seen while others use it.
    pub fn pages(&self) -> Pages {
        Pages(self.held.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
