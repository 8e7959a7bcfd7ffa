//! The large cache: long free spans in front of the page heap, without a lock.
//!
//! **What.** Spans in use to the page heap serve requests of about their length; an eighth too much
//! costs less than a lock. The heap's owner drains the cache before the heap grows, before a
//! release and once a second.
//! **State.** A set for each eighth of a power of two is a cache line of eight slots. A slot is 0,
//! or a span's length with its first page plus 1 above it, exchanged as a whole (P10).
//! **Cost.** 8 to 16 loads from one or two lines, two atomic exchanges.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use craton_base::{PageId, PageRange, Pages};

/// Further CPUs share them.
const SHARDS: usize = 64;
/// One for short spans; eight in each doubling up to [`LargeCache::LONGEST`].
const SETS: usize = 2 + 8 * 5;
const SLOTS: usize = 8;
const SERVED: u64 = 1 << 32;
/// In a report; the first [`FIRST`] come singly, since a small program has no more.
const DOZEN: u32 = 12;
const FIRST: u64 = 1024;
/// Before the page heap.
const LOOKS: usize = 4;
/// A span may exceed the request by this part of it.
const EXCESS_PART: u32 = 8;

#[repr(align(64))]
struct Set([AtomicU64; SLOTS]);

#[repr(align(64))]
struct Shard {
    /// Pages, counted before a span comes and after it left; from [`SERVED`] on, unreported
    /// objects.
    counts: AtomicU64,
    /// Where the next eviction starts.
    hand: AtomicU32,
    sets: [Set; SETS],
}

/// All zeros: empty.
pub struct LargeCache {
    shards: [Shard; SHARDS],
    /// Ever: bits, and their number.
    used: AtomicU64,
    shards_used: AtomicU32,
    is_late: AtomicBool,
}

fn pack(span: PageRange) -> u64 {
    (u64::from(span.first.0) + 1) << 32 | u64::from(span.len.0)
}

fn unpack(slot: u64) -> Option<PageRange> {
    let first = (slot >> 32).checked_sub(1)?;
    Some(PageRange::new(PageId(first as u32), Pages(slot as u32)))
}

#[inline]
fn set_of(len: u32) -> usize {
    match len {
        0..8 => 0,
        _ => {
            let log = len.ilog2() - 3;
            (8 * log + (len >> log) - 7) as usize
        }
    }
}

impl Shard {
    #[inline]
    fn pop(&self, (pages, most): (u32, u32), align: u32, served: u64) -> Option<PageRange> {
        if most < pages {
            return None;
        }
        for set in &self.sets[set_of(pages)..=set_of(most)] {
            // An empty slot's length is 0, and wraps.
            let (mut least, mut best) = (most - pages + 1, None);
            for slot in &set.0 {
                let seen = slot.load(Ordering::Relaxed);
                let excess = (seen as u32).wrapping_sub(pages);
                if excess < least && ((seen >> 32) as u32 - 1) & (align - 1) == 0 {
                    (least, best) = (excess, Some((slot, seen)));
                }
            }
            // ORDERING: pairs with the Release in `place`: the last user's writes precede the next
            // one's.
            if let Some((slot, seen)) = best
                && slot.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                self.counts.fetch_add(served.wrapping_sub((seen as u32).into()), Ordering::Relaxed);
                return unpack(seen);
            }
        }
        None
    }

    /// Returns the span that it replaced.
    #[inline]
    fn place(&self, span: PageRange) -> Option<PageRange> {
        let slots = &self.sets[set_of(span.len.0)].0;
        for slot in slots {
            // ORDERING: pairs with the Acquire in `pop`, in `drain` and below.
            if slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, pack(span), Ordering::Release, Ordering::Relaxed).is_ok()
            {
                return None;
            }
        }
        // ORDERING: as above: the old span leaves, the new one comes.
        unpack(slots[span.first.0 as usize % SLOTS].swap(pack(span), Ordering::AcqRel))
    }

    fn held(&self) -> u32 {
        self.counts.load(Ordering::Relaxed) as u32
    }

    fn evict(&self) -> Option<PageRange> {
        let hand = self.hand.load(Ordering::Relaxed) as usize;
        for set in (hand..hand + SETS).map(|set| set % SETS) {
            for slot in &self.sets[set].0 {
                if slot.load(Ordering::Relaxed) == 0 {
                    continue;
                }
                // ORDERING: pairs with the Release in `place`.
                if let Some(span) = unpack(slot.swap(0, Ordering::Acquire)) {
                    self.counts.fetch_sub(span.len.0.into(), Ordering::Relaxed);
                    self.hand.store((set + 1) as u32 % SETS as u32, Ordering::Relaxed);
                    return Some(span);
                }
            }
        }
        None
    }
}

impl LargeCache {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with.
    pub const EMPTY: Self = Self {
        shards: [const {
            Shard {
                counts: AtomicU64::new(0),
                hand: AtomicU32::new(0),
                sets: [const { Set([const { AtomicU64::new(0) }; SLOTS]) }; SETS],
            }
        }; SHARDS],
        used: AtomicU64::new(0),
        shards_used: AtomicU32::new(0),
        is_late: AtomicBool::new(false),
    };

    /// Longer spans are used so long that a lock does not matter.
    pub const LONGEST: Pages = Pages(256);

    pub fn most_for(pages: Pages) -> Pages {
        Pages((pages.0 + pages.0 / EXCESS_PART).min(Self::LONGEST.0))
    }

    fn shard(&self, cpu: usize) -> &Shard {
        &self.shards[cpu % SHARDS]
    }

    /// At a multiple of `align`, with old contents.
    #[inline]
    pub fn pop(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        self.shard(cpu).pop((pages.0, Self::most_for(pages).0), align.0, SERVED)
    }

    /// A thread may have moved, and the page heap costs more than another CPU's lines.
    pub fn pop_anywhere(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        let mut used = self.used.load(Ordering::Relaxed).rotate_right((cpu % SHARDS) as u32);
        (0..LOOKS).find_map(|_| {
            let next = used.trailing_zeros() as usize;
            used &= used.wrapping_sub(1);
            if next < SHARDS { self.pop(cpu + next, pages, align) } else { None }
        })
    }

    pub fn pop_longer(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        self.shard(cpu).pop((pages.0 + 1, Self::LONGEST.0), align.0, 0)
    }

    pub fn pop_exactly(&self, cpu: usize, pages: Pages, align: Pages) -> Option<PageRange> {
        self.shard(cpu).pop((pages.0, pages.0), align.0, 0)
    }

    /// The caller frees the span that comes back.
    #[must_use]
    pub fn put(&self, cpu: usize, span: PageRange) -> Option<PageRange> {
        if span.len > Self::LONGEST {
            return Some(span);
        }
        let shard = self.shard(cpu);
        // Slots never hold more than the count.
        shard.counts.fetch_add(span.len.0.into(), Ordering::Relaxed);
        let old = shard.place(span);
        if let Some(old) = old {
            shard.counts.fetch_sub(old.len.0.into(), Ordering::Relaxed);
        }
        self.record_use(cpu);
        old
    }

    #[inline]
    pub fn is_over(&self, cpu: usize, most: Pages) -> bool {
        let shards = self.shards_used.load(Ordering::Relaxed).max(1);
        self.shard(cpu).held() > most.0 / shards
    }

    pub fn evict(&self, cpu: usize) -> Option<PageRange> {
        self.shard(cpu).evict()
    }

    /// The page heap served the object.
    pub fn count(&self, cpu: usize) {
        self.shard(cpu).counts.fetch_add(SERVED, Ordering::Relaxed);
        self.record_use(cpu);
    }

    /// `report` returns all so far.
    #[inline]
    pub fn report(&self, cpu: usize, report: impl FnOnce(u32) -> u64) {
        let served = (self.shard(cpu).counts.load(Ordering::Relaxed) / SERVED) as u32;
        if served >= DOZEN || !self.is_late.load(Ordering::Relaxed) {
            self.report_of(self.shard(cpu), report);
        }
    }

    pub fn report_all(&self, mut report: impl FnMut(u32) -> u64) {
        self.used().for_each(|shard| self.report_of(shard, &mut report));
    }

    fn report_of(&self, shard: &Shard, report: impl FnOnce(u32) -> u64) {
        let served = (shard.counts.fetch_and(SERVED - 1, Ordering::Relaxed) / SERVED) as u32;
        if served > 0 && report(served) >= FIRST {
            self.is_late.store(true, Ordering::Relaxed);
        }
    }

    pub fn evict_any(&self) -> Option<PageRange> {
        self.used().filter(|shard| shard.held() > 0).find_map(Shard::evict)
    }

    fn record_use(&self, cpu: usize) {
        let bit = 1 << (cpu % SHARDS);
        if self.used.load(Ordering::Relaxed) & bit == 0 && self.used.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.shards_used.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn used(&self) -> impl Iterator<Item = &Shard> {
        let used = self.used.load(Ordering::Relaxed);
        self.shards.iter().enumerate().filter(move |(i, _)| used >> i & 1 == 1).map(|(_, shard)| shard)
    }

    pub fn drain(&self, mut free: impl FnMut(PageRange)) {
        while let Some(span) = self.evict_any() {
            free(span);
        }
    }

    /// Approximate while threads use it.
    pub fn pages(&self) -> Pages {
        Pages(self.used().map(Shard::held).sum())
    }
}

#[cfg(test)]
mod tests;
