//! The large cache: long free spans in front of the page heap, without a lock.
//!
//! **What.** A shard for each CPU holds a few spans of up to [`LargeCache::LONGEST`] pages, for
//! requests of exactly that length. To the page heap they are in use. The heap's owner drains it
//! ([`LargeCache::drain`]) before a release and once a second.
//!
//! **State.** A shard has eight sets by length modulo 8, each a cache line of eight slots. A slot
//! is 0, or a span's length with its first page plus 1 above it.
//!
//! **Invariants.** P10: a span is in at most one slot: slots change by exchange as a whole.
//!
//! **Threads.** Any thread may use any shard; a migrated one loses only locality.
//!
//! **Cost.** Eight loads from one line and two atomic exchanges. Holds back at most the caller's
//! bound ([`LargeCache::put`]), plus one span for each thread inside.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_base::{PageId, PageRange, Pages};

/// Shards; further CPUs share them.
const SHARDS: usize = 64;
const SETS: usize = 8;
const SLOTS: usize = 8;

#[repr(align(64))]
struct Set([AtomicU64; SLOTS]);

/// All CPUs' long spans. All zeros: empty.
pub struct LargeCache {
    shards: [[Set; SETS]; SHARDS],
    held: AtomicU32,
    /// A bit for each shard that ever held a span.
    used: AtomicU64,
}

fn pack(span: PageRange) -> u64 {
    (u64::from(span.first.0) + 1) << 32 | u64::from(span.len.0)
}

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

    /// Longest kept span, 2 MiB: a longer one is used so long that a lock does not matter.
    pub const LONGEST: Pages = Pages(256);

    fn slots(&self, cpu: usize, len: Pages) -> &[AtomicU64; SLOTS] {
        &self.shards[cpu % SHARDS][len.0 as usize % SETS].0
    }

    /// Removes a span of `pages` at a multiple of `align`, with its old contents.
    pub fn take(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        self.slots(cpu, pages).iter().find_map(|slot| {
            let seen = slot.load(Ordering::Relaxed);
            let span = unpack(seen).filter(|s| s.len == pages && s.first.0.is_multiple_of(align.0))?;
            // ORDERING: Acquire pairs with the Release in `place`: the last user's writes to the
            // span's pages and metadata precede the next one's.
            slot.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed).ok()?;
            self.held.fetch_sub(span.len.0, Ordering::Relaxed);
            Some(span)
        })
    }

    /// Removes the shortest span longer than `pages` at a multiple of `align`.
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

    /// Keeps a freed span if at most `most` pages are then kept, perhaps in place of another.
    /// Returns the span that must go to the page heap.
    #[must_use]
    pub fn put(&self, cpu: usize, span: PageRange, most: Pages) -> Option<PageRange> {
        if span.len > Self::LONGEST {
            return Some(span);
        }
        // Count first: the slots never hold more than the count.
        let held = self.held.fetch_add(span.len.0, Ordering::Relaxed) + span.len.0;
        let given = self.place(cpu, span, held.saturating_sub(most.0));
        if let Some(given) = given {
            self.held.fetch_sub(given.len.0, Ordering::Relaxed);
        }
        given
    }

    /// Puts a span into a slot; evicts one if none is empty or `over` pages are too many.
    fn place(&self, cpu: usize, span: PageRange, over: u32) -> Option<PageRange> {
        let slots = self.slots(cpu, span.len);
        if over == 0 {
            for slot in slots {
                // ORDERING: Release pairs with the Acquire in `take`, in `drain` and below.
                if slot.load(Ordering::Relaxed) == 0
                    && slot.compare_exchange(0, pack(span), Ordering::Release, Ordering::Relaxed).is_ok()
                {
                    self.note_used(cpu);
                    return None;
                }
            }
        }
        // The span freed last is the likeliest to be requested next.
        let slot = &slots[span.first.0 as usize / 8 % SLOTS];
        let seen = slot.load(Ordering::Relaxed);
        // ORDERING: Acquire and Release as above: the old span leaves, the new one comes.
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

    /// Removes every span and calls `give` with it.
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

    /// Pages held; approximate while threads use it.
    pub fn pages(&self) -> Pages {
        Pages(self.held.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
