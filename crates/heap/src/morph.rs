//! Slab morphing: slabs change their size class while objects live on them.
//!
//! **What.** Before a class takes a new span, it looks for another class's slab on a span of the
//! same length with few live objects, then for two neighbours of half the length. The pages are
//! marked [`MORPHED`] until the slab has one class. The fast paths do not know that mark, so each
//! free on such a slab comes here. The new class's objects go into the thread cache as always, the
//! old classes' straight to the slab. The hugepage keeps its density.
//!
//! **From.** NVAlloc §5.2.
//!
//! **Threads.** A slab morphs under the locks of its old and new classes and of the table; the old
//! classes' are only tried. It settles under the locks of its new class and of the table. The
//! table's lock alone therefore makes the page map and a slab's record reliable. Cached objects of
//! the old class count as live; a flush to their old class forwards them here.
//!
//! **Cost.** A search when a new span would be taken: a few try-locks, with back-off. A free on a
//! morphed slab takes the table's lock.
//!
//! **Failure.** Without memory for the table no slab morphs.
//!
//! **Unsafe.** Hands slabs the region's address, and gives the table its memory.

use crate::heap::{Heap, Layout};
use crate::hooks::Hooks;
use crate::mark::mark_free;
use crate::search::{FIRST, NEXT, has_span};
use crate::size_class::{self, CLASSES, MORPHED};
use crate::spans::{Kept, Marked};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::atomic::AtomicU32;
use craton_base::{
    Clock, Density, Mappings, PAGE_SIZE, PageId, PageRange, Pages, Platform, Span, SpanError, SpanSource, Table,
};
use craton_os::Guard;
use craton_slab::{Left, Morph, Morphs, NO_OFFER, Offer, Place, SlabCache, Wish};

/// Slabs of two classes at most; entries take memory only once used.
const MOST: usize = if cfg!(loom) { 8 } else { 1 << 18 };
/// Classes asked in one search.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 8 };
/// Slabs tried in one search.
const TRIES: usize = 10;

/// Spans for a class, from other classes' nearly empty slabs before the heap grows.
pub(crate) struct Recut<'a, F: Platform, C: Clock, H: Hooks>(pub(crate) Marked<'a, F, C, H>);

impl<F: Platform, C: Clock, H: Hooks> SpanSource for Recut<'_, F, C, H> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let Marked { heap, home, class } = self.0;
        if let Some(span) = self.0.alloc_short(pages, align, density) {
            return Ok(span);
        }
        if let Some(range) = heap.second_hand(home, class) {
            return Ok(Span { range, zeroed: false });
        }
        let span = Kept { heap }.alloc(pages, align, density)?;
        self.0.adopt(span.range);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.0.free(span, density)
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Another class's slab for `class` in a shard, whose lock the caller holds.
    #[cold]
    pub fn second_hand(&self, home: usize, class: usize) -> Option<PageRange> {
        self.search.note_taken(class);
        if usize::from(NEXT[class]) == class || !self.search.is_growth(class) || !self.search.is_due(class) {
            return None;
        }
        let pages = size_class::geometry(class).pages;
        let range = self.ask(&self.search.donor, pages, (home, class)).or_else(|| {
            if pages.0 > 1 { self.ask(&self.search.half_donor, Pages(pages.0 / 2), (home, class)) } else { None }
        });
        if range.is_none() {
            self.search.shard.fetch_add(1, Relaxed);
        }
        self.search.note(class, range.is_some());
        range
    }

    /// Asks some of the classes with slabs of `pages`, starting from the last donor.
    fn ask(&self, last: &AtomicU32, pages: Pages, (home, class): (usize, usize)) -> Option<PageRange> {
        let mut donor = last.load(Relaxed) as usize;
        if donor == 0 || !has_span(donor, pages) {
            donor = FIRST[pages.0.trailing_zeros() as usize].into();
            if donor == 0 {
                return None;
            }
        }
        // Also asks one shard of another home, whose threads may have left a slab.
        let shards = self.homes();
        let other = self.search.shard.load(Relaxed) as usize % shards;
        let mut tries = TRIES;
        for _ in 0..LOOKS {
            for shard in [home, other].into_iter().take(shards) {
                if donor != class
                    && self.search.is_at_rest(donor)
                    && let Some(range) = self.morph((shard, donor), (home, class), &mut tries)
                {
                    last.store(donor as u32, Relaxed);
                    return Some(range);
                }
            }
            donor = NEXT[donor].into();
        }
        last.store(donor as u32, Relaxed);
        None
    }

    /// Morphs a slab, or half of one, into one of `to`, whose lock the caller holds.
    fn morph(&self, (shard, from): (usize, usize), to: (usize, usize), tries: &mut usize) -> Option<PageRange> {
        let mut slabs = self.try_slabs(shard, from)?;
        if slabs.is_unset() {
            return None;
        }
        let records = &self.layout().records;
        let mut tried = [None; TRIES];
        let candidates = slabs.candidates(size_class::geometry(to.1), records);
        tried[..*tries].iter_mut().zip(candidates).for_each(|(slot, slab)| *slot = Some(slab));
        let is_half = !has_span(from, size_class::geometry(to.1).pages);
        tried.into_iter().flatten().find_map(|slab| {
            *tries -= 1;
            if !is_half {
                return self.morph_into(to, [Offer { cache: Some(&mut slabs), slab, from: from as u8 }, NO_OFFER]);
            }
            let (beside, class, mut other) = self.neighbour((shard, from), slab, &slabs)?;
            let second = Offer { cache: other.as_deref_mut(), slab: beside, from: class as u8 };
            self.morph_into(to, [Offer { cache: Some(&mut slabs), slab, from: from as u8 }, second])
        })
    }

    /// A neighbour with which the slab could become one of twice the length: its page, class, and
    /// the lock of its cache, if another.
    fn neighbour(
        &self,
        (shard, class): (usize, usize),
        slab: PageId,
        slabs: &SlabCache,
    ) -> Option<(PageId, usize, Option<Guard<'_, SlabCache>>)> {
        let records = &self.layout().records;
        let pages = size_class::geometry(class).pages;
        let beside = PageId(slab.0 ^ pages.0);
        let (other, record) = (self.mark(beside) as usize, &records[beside.0 as usize]);
        if !(1..=CLASSES).contains(&other) || !has_span(other, pages) {
            return None;
        }
        let owner = record.owner();
        if (owner, other) == (shard, class) {
            return slabs.is_candidate(record.as_ref()).then_some((beside, other, None));
        }
        let guard = self.try_slabs(owner, other)?;
        // Re-checks under the lock.
        let is_theirs = usize::from(self.mark(beside)) == other && record.owner() == owner;
        (is_theirs && guard.is_candidate(record.as_ref())).then_some((beside, other, Some(guard)))
    }

    /// Morphs locked slabs into one of class `to`, whose lock the caller holds.
    fn morph_into(&self, (home, to): (usize, usize), offers: [Offer<'_>; 2]) -> Option<PageRange> {
        let pages = size_class::geometry(to).pages;
        let donors = offers.each_ref().map(|offer| usize::from(offer.from));
        let is_pair = offers[0].cache.as_ref().is_some_and(|cache| cache.geometry().pages != pages);
        let mut morphs = self.morphs.lock();
        if morphs.is_unset() {
            // Address space may be short: there are no more slabs than pages.
            let most = MOST.min(self.layout().records.len());
            let table = self.system.map((most * size_of::<Morph>()).next_multiple_of(PAGE_SIZE), PAGE_SIZE)?;
            // SAFETY: the mapping is new, zeroed, aligned and permanent.
            *morphs = Morphs::new(unsafe { Table::new(table as *mut Morph, most) });
        }
        let Layout { base, key, records, .. } = self.layout();
        let wish = Wish { geometry: size_class::geometry(to), to: to as u8 };
        // SAFETY: base, records and table are this heap's; all caches and the table are locked.
        let range = unsafe {
            craton_slab::donate(wish, offers, *base as *mut u8, records, &mut morphs, |o| mark_free(*key, o))?
        };
        if is_pair {
            let half = Pages(range.len.0 / 2);
            let (first, second) =
                (PageRange::new(range.first, half), PageRange::new(PageId(range.first.0 + half.0), half));
            let joined = self.lock_pages().join(first, second);
            self.expect_given(first, joined);
        }
        for i in 0..range.len.0 {
            let record = &records[(range.first.0 + i) as usize];
            record.set_owner(home);
            // No span begins at the second part any more.
            self.length(PageId(range.first.0 + i)).set_pages(if i == 0 { range.len } else { Pages(0) });
        }
        self.search.shrank(donors[0]);
        if is_pair {
            self.search.shrank(donors[1]);
        }
        self.search.grew(to);
        self.set_marks(range, MORPHED, true);
        Some(range)
    }

    /// The slab around a page that is still marked [`MORPHED`].
    fn mixed_slab(&self, morphs: &Morphs, page: PageId) -> Option<PageId> {
        if self.mark(page) != MORPHED {
            return None;
        }
        morphs.range_of(self.record(page).as_ref()).map(|slab| slab.first)
    }

    /// The object at a pointer into a page marked [`MORPHED`]; `None` if the mark has changed.
    pub(crate) fn look(&self, morphs: &Morphs, pointer: *mut u8, page: PageId) -> Option<Place> {
        let slab = self.mixed_slab(morphs, page)?;
        morphs.look(self.record(slab).as_ref(), pointer as usize - self.address(slab) as usize)
    }

    /// Frees an object of a morphed slab; whether it was live. `None` if the slab has settled.
    ///
    /// # Safety
    /// The caller gives the object up.
    pub(crate) unsafe fn give_mixed(&self, object: *mut u8, page: PageId) -> Option<bool> {
        let owner = |morphs: &Morphs| {
            let record = self.record(self.mixed_slab(morphs, page)?);
            Some((record.owner(), morphs.class_of(record.as_ref())?))
        };
        let mut known = owner(&self.morphs.lock())?;
        let ((home, to), mut slabs, mut morphs) = loop {
            let slabs = self.slabs(known.0, known.1.into());
            let morphs = self.morphs.lock();
            // Before the lock was taken the slab may have settled, or changed its class.
            match owner(&morphs)? {
                now if now == known => break (known, slabs, morphs),
                now => known = now,
            }
        };
        let mut source = Marked { heap: self, home, class: to.into() };
        let Layout { base, key, records, .. } = self.layout();
        // SAFETY: base, records, table and source are this heap's; cache and table are locked.
        let left = unsafe {
            let base = *base as *mut u8;
            slabs.free_mixed(object, base, records, &mut morphs, &mut source, |o| mark_free(*key, o))
        };
        if let Ok(Left::Ordinary(range)) = left {
            self.set_marks(range, to, true);
        }
        Some(left.is_ok())
    }
}
