//! The page heap (TEMERAIRE §4.1, Figure 7): routes requests, and composes the parts.
//! ```text
//! pages ≤ half a hugepage   the filler, by the placement; else after adding a hugepage to it
//! < a hugepage              the filler if it has room; else as below
//! beyond                    a region with room, if any; else whole hugepages, the last one's
//!                           slack donated to the filler (Figure 8)
//! whole hugepages           the cache; on a miss the allocator below it
//! ```
//!
//! Only [`Self::change`] changes a filler's hugepage: it keeps lists and placement in step.

mod acts;
mod background;
mod check;
mod figures;
mod resize;
mod spans;

pub use check::Broken;
pub use figures::{Census, Component, Components, PageHeapStats};

use crate::backing::{Backing, HugeBacking, Use};
use crate::collapse::Collapse;
use crate::demand::Demand;
use crate::donation::{Donation, Large, leave_tail, occupy_whole};
use crate::filler::Filler;
use crate::fit::{Fit, Found, LongestFreeFirst};
use crate::frames::ByFrames;
use crate::growth::Growth;
use crate::huge_cache::HugeCache;
use crate::placement::{ByLists, Placement, Wanted};
use crate::region::Regions;
use crate::release::Release;
use crate::tracker::{Left, Place, Tracker, Trackers};
use core::cmp::Ordering;
use core::mem::offset_of;
use craton_base::{
    Clock, Density, Floor, FrameSource, Geometry, Huge2M, HugePageId, HugePages, NoMemory, PAGES_PER_HUGEPAGE,
    PageRange, Pages, Span, SpanError, SpanSource, Table,
};

/// `K` places short spans.
pub struct Temeraire<F, C, P = LongestFreeFirst, K = ByLists, G: Geometry = Huge2M> {
    floor: F,
    clock: C,
    trackers: Trackers<G>,
    pub(crate) cache: HugeCache<G>,
    filler: Filler<P, G>,
    placement: K,
    regions: Regions<G>,
    donation: Donation<G>,
    backing: Backing<G>,
    collapse: Collapse,
    demand: Demand,
    growth: Growth,
    release: Release,
    in_use: u32,
}

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    /// Spans up to this length always go to the filler.
    const HALF: u32 = G::PAGES / 2;
    /// From here on slack is negligible.
    const HUGE_REQUEST: u32 = G::REGION * G::PAGES;

    /// Where the address of the first tracker is, for readers of another process.
    pub const TRACKERS: usize = offset_of!(Self, trackers) + Table::<Tracker<G>>::SHAPE[0];

    /// Trackers are zero when granted.
    pub const fn new(floor: F, clock: C, trackers: Trackers<G>, capacity: HugePages, backing: HugeBacking) -> Self {
        Self {
            floor,
            clock,
            trackers,
            cache: HugeCache::new(capacity),
            filler: Filler::EMPTY,
            placement: K::BY_LISTS,
            regions: Regions::EMPTY,
            donation: Donation::NONE,
            backing: Backing::new(backing),
            collapse: Collapse::new(),
            demand: Demand::NONE,
            growth: Growth::NONE,
            release: Release::STILL,
            in_use: 0,
        }
    }

    /// All zeros if `floor` and `clock` are, to take no room in the file.
    pub const fn empty(floor: F, clock: C) -> Self {
        Self::new(floor, clock, Trackers::EMPTY, HugePages(0), HugeBacking::ALWAYS)
    }

    pub fn install(&mut self, floor: F, trackers: Trackers<G>, capacity: HugePages, backing: HugeBacking) {
        debug_assert_eq!(self.granted(), HugePages(0));
        (self.floor, self.trackers) = (floor, trackers);
        self.cache = HugeCache::new(capacity);
        self.backing = Backing::new(backing);
    }

    pub fn floor(&self) -> &F {
        &self.floor
    }

    /// Frames need a heap without regions.
    fn set_regions(&mut self, allowed: bool) {
        self.regions.set_allowed(allowed && self.placement.is_by_lists());
    }

    /// Without new memory.
    fn alloc_backed(&mut self, pages: Pages, align: Pages, density: Density) -> Option<Span> {
        if self.unfit(pages, align).is_some() {
            return None;
        }
        let has_whole = self.cache.total() >= G::hugepages_up(pages);
        if has_whole || !self.placement.is_by_lists() {
            return if has_whole { self.alloc(pages, align, density).ok() } else { None };
        }
        let (pages, align) = (pages.0, align.0);
        if pages >= G::PAGES || align >= G::PAGES {
            return None;
        }
        let is_small = pages <= Self::HALF;
        let packing = if is_small { Filler::<P, G>::packing(pages, align, density) } else { Density::Sparse };
        let found = self
            .filler
            .find(&self.trackers, pages, align, packing)
            .or_else(|| if is_small { self.find_in_other(Wanted { pages, align, density: packing }) } else { None });
        let (id, at) = found.filter(|(id, at)| self.trackers[id.0 as usize].has_memory(*at, pages))?;
        let span = self.place((id, at), pages);
        self.count(0, pages);
        Some(span)
    }

    pub(crate) fn in_demand(&self) -> HugePages {
        HugePages(self.cache.out().0 - self.regions.held().idle)
    }

    fn alloc_long(&mut self, pages: u32, align: u32) -> Result<Span, SpanError> {
        let slack = pages.next_multiple_of(G::PAGES) - pages;
        let sparse = Wanted { pages, align, density: Density::Sparse };
        if slack > 0 && pages < Self::HUGE_REQUEST && align < G::PAGES {
            if pages < G::PAGES
                && let Some(found) = self.placement.choose(&self.filler, &self.trackers, sparse)
            {
                return Ok(self.place(found, pages));
            }
            if let Some(span) = self.alloc_in_region(pages, align, false) {
                return Ok(span);
            }
            if self.donation.is_outweighed(self.filler.slack() + slack)
                && self.start_region()
                && let Some(span) = self.alloc_in_region(pages, align, false)
            {
                return Ok(span);
            }
        }
        self.alloc_large(pages, align).or_else(|refused| self.alloc_in_need(sparse).ok_or(refused.into()))
    }

    fn alloc_small(&mut self, pages: u32, align: u32, density: Density) -> Result<Span, SpanError> {
        let span = Wanted { pages, align, density: Filler::<P, G>::packing(pages, align, density) };
        if let Some(found) = self.placement.choose(&self.filler, &self.trackers, span) {
            return Ok(self.place(found, pages));
        }
        if let Some(found) = self.find_in_other(span) {
            return Ok(self.place(found, pages));
        }
        let kind = Use { pages: Pages(pages), fills_up: span.density == Density::Dense, later: false };
        match self.alloc_hugepages(HugePages(1), HugePages(1), kind) {
            Ok(id) => {
                let t = &mut self.trackers[id.0 as usize];
                t.reset();
                t.dense = span.density == Density::Dense;
                let zeroed = t.occupy(0, pages);
                self.adopt(id);
                Ok(Span { range: G::part(id, 0, pages), zeroed })
            }
            Err(refused) => self.alloc_in_need(span).ok_or(refused.into()),
        }
    }

    /// Frames have searched there already.
    fn find_in_other(&self, span: Wanted) -> Found {
        if !self.placement.is_by_lists() {
            return None;
        }
        self.filler.find_in_other(&self.trackers, span.pages, span.align, span.density)
    }

    #[cold]
    fn alloc_in_need(&mut self, span: Wanted) -> Option<Span> {
        let Wanted { pages, align, density } = span;
        if pages < G::PAGES
            && align < G::PAGES
            && let Some((id, at)) = self.filler.find_in_need(&self.trackers, pages, align, density)
        {
            self.placement.placed(id, at, pages);
            return Some(self.place((id, at), pages));
        }
        self.alloc_in_region(pages, align, true)
    }

    fn place(&mut self, (id, at): (HugePageId, u32), pages: u32) -> Span {
        let zeroed = self.filler.update(&mut self.trackers, id, |t| t.occupy(at, pages));
        Span { range: G::part(id, at, pages), zeroed }
    }

    fn alloc_large(&mut self, pages: u32, align: u32) -> Result<Span, NoMemory> {
        let len = G::hugepages_up(Pages(pages));
        let kind = Use { pages: Pages(pages), fills_up: false, later: false };
        let first = self.alloc_hugepages(len, HugePages(align.div_ceil(G::PAGES).max(1)), kind)?;
        let range = PageRange::new(G::page(first, 0), Pages(pages));
        let large = Large::of::<G>(range);
        let mut zeroed = occupy_whole(&mut self.trackers, first, large.whole, true);
        if large.tail > 0 {
            zeroed &= self.donate(large, large.whole.0 == 0);
        }
        Ok(Span { range, zeroed })
    }

    fn donate(&mut self, span: Large, begins: bool) -> bool {
        let zeroed = leave_tail(&mut self.trackers, span.last(), span.tail, begins);
        self.adopt(span.last());
        zeroed
    }

    fn adopt(&mut self, id: HugePageId) {
        self.placement.adopt(id, &self.trackers[id.0 as usize]);
        self.filler.adopt(&mut self.trackers, id);
    }

    fn expel(&mut self, id: HugePageId) {
        self.placement.expel(id, &self.trackers[id.0 as usize]);
        self.filler.expel(&mut self.trackers, id);
    }

    #[inline]
    fn change<R>(&mut self, id: HugePageId, change: impl FnOnce(&mut Tracker<G>) -> R) -> R {
        if self.placement.is_by_lists() {
            return self.filler.update(&mut self.trackers, id, change);
        }
        let before = *self.trackers[id.0 as usize].used();
        let result = self.filler.update(&mut self.trackers, id, change);
        self.placement.follow(id, &before, &self.trackers[id.0 as usize]);
        result
    }

    fn vacate(&mut self, id: HugePageId, at: u32, pages: u32) {
        self.change(id, |t| {
            t.vacate(at, pages);
            t.donated &= at != 0;
            // They must not keep longer spans off it.
            t.dense &= t.used_pages() >= G::PAGES / 4;
        });
        let t = &self.trackers[id.0 as usize];
        if t.used_pages() == 0 && !t.collapsing {
            self.retire(id);
        } else if t.broken {
            // §4.6, "freed to the system at once".
            self.unback(id, at, pages);
        }
    }

    fn unback(&mut self, id: HugePageId, at: u32, pages: u32) {
        let lost = self.filler.unback(&mut self.trackers, &mut self.floor, id, at, pages);
        self.release.count(lost);
    }

    fn retire(&mut self, id: HugePageId) {
        self.expel(id);
        let was_broken = self.trackers[id.0 as usize].broken;
        self.backing.unguard(&mut self.trackers, &mut self.floor, id, HugePages(1));
        let t = &mut self.trackers[id.0 as usize];
        // It would keep its next use on small pages.
        if was_broken && self.backing.will_be_huge(id, t) && self.floor.unback(G::range(id)).is_ok() {
            self.release.count(t.unbacked().into());
            self.cache.put_unbacked(&mut self.trackers, id, HugePages(1));
            self.record_demand();
        } else {
            self.put(id, HugePages(1));
        }
    }

    fn alloc_hugepages(&mut self, len: HugePages, align: HugePages, span: Use) -> Result<HugePageId, NoMemory> {
        let granted = self.granted();
        let taken = self.cache.alloc(&mut self.trackers, &mut self.floor, len, align, self.backing.front())?;
        let kind = Use { later: self.begins_small(len, span), ..span };
        self.back_new(granted, (taken.first, len), kind);
        self.record_taken(taken.missing);
        self.make_up_for(taken.missing);
        Ok(taken.first)
    }

    /// Unbacks as much as a request backed, of hugepages that could not serve it.
    fn make_up_for(&mut self, backed: HugePages) {
        self.shrink(backed.min(self.free_backed_hugepages()));
    }

    /// Growth by several at once is fast.
    fn begins_small(&mut self, len: HugePages, span: Use) -> bool {
        if len.0 > 1 || !self.backing.trusts(span) {
            return self.growth.is_paused();
        }
        let (now, demand) = (self.clock.now_ns(), self.in_demand());
        self.growth.begins_small(demand, now)
    }

    fn back_new(&mut self, granted: HugePages, taken: (HugePageId, HugePages), span: Use) {
        self.follow_grant(granted);
        let demand = self.in_demand();
        self.backing.expect(&mut self.trackers, &mut self.floor, taken, span, demand);
    }

    fn follow_grant(&mut self, old: HugePages) {
        let granted = self.granted();
        if granted > old {
            self.backing.grown(&mut self.floor, old, granted);
        }
    }

    /// Unbacks those above the limit, and those whose next spans may touch less.
    fn put(&mut self, first: HugePageId, len: HugePages) {
        let (mut at, end) = (first.0, first.0 + len.0);
        while at < end {
            let is_unsure = |i: u32| self.trackers[i as usize].left == Left::Unsure;
            let unsure = is_unsure(at);
            let part = HugePages((at..end).take_while(|i| is_unsure(*i) == unsure).count() as u32);
            match unsure {
                true => self.put_unsure(HugePageId(at), part),
                false => self.cache.put(&mut self.trackers, HugePageId(at), part),
            }
            at += part.0;
        }
        self.record_demand();
        self.shrink_to_limit();
    }

    fn put_unsure(&mut self, first: HugePageId, len: HugePages) {
        if self.floor.unback(G::run(first, len)).is_err() {
            self.cache.put(&mut self.trackers, first, len);
            return;
        }
        for i in first.0..first.0 + len.0 {
            self.release.count(self.trackers[i as usize].unbacked().into());
        }
        self.cache.put_unbacked(&mut self.trackers, first, len);
    }

    fn record_demand(&mut self) {
        self.record_taken(HugePages(0));
    }

    /// After a request that missed `missing` in the cache.
    fn record_taken(&mut self, missing: HugePages) {
        let (now, demand) = (self.clock.now_ns(), self.in_demand());
        if missing.0 > 0 {
            self.cache.limit.missed(missing, demand, now);
        }
        self.cache.limit.record(demand, now);
    }

    #[cold]
    fn start_region(&mut self) -> bool {
        let (granted, size) = (self.granted(), HugePages(G::REGION));
        if !self.regions.are_allowed() {
            return false;
        }
        let taken = self.cache.alloc_unbacked(&mut self.trackers, &mut self.floor, size, size);
        self.follow_grant(granted);
        taken.is_ok_and(|head| {
            self.regions.begin(&mut self.trackers, head);
            true
        })
    }

    fn alloc_in_region(&mut self, pages: u32, align: u32, in_need: bool) -> Option<Span> {
        let range = self.regions.find(&self.trackers, pages, align, in_need)?;
        let zeroed = self.occupy_in_region(range, true);
        Some(Span { range, zeroed })
    }

    fn occupy_in_region(&mut self, range: PageRange, begins: bool) -> bool {
        let first = G::hugepage(range.first);
        let len = HugePages(range.end().0.div_ceil(G::PAGES) - first.0);
        let (kind, demand) =
            (Use { pages: range.len, fills_up: false, later: self.growth.is_paused() }, self.in_demand());
        self.backing.advise_span(&mut self.trackers, &mut self.floor, (first, len), kind, demand);
        let huge = |id: HugePageId, t: &Tracker<G>| self.backing.will_be_huge(id, t);
        let occupied = self.regions.occupy(&mut self.trackers, range, begins, huge);
        self.record_taken(occupied.missing);
        self.make_up_for(occupied.missing);
        occupied.zeroed
    }

    fn vacate_in_region(&mut self, range: PageRange, whole: bool) {
        let head = self.regions.vacate(&mut self.trackers, range, whole);
        let lost = self.regions.unback_unsure(&mut self.trackers, &mut self.floor, range);
        self.release.count(lost);
        if let Some(head) = head {
            self.regions.end(&mut self.trackers, head);
            // Ranges join neighbours of the same kind.
            for id in (head.0..head.0 + G::REGION).map(HugePageId) {
                if self.trackers[id.0 as usize].backed_pages() > 0 {
                    self.cache.put(&mut self.trackers, id, HugePages(1));
                } else {
                    self.cache.put_unbacked(&mut self.trackers, id, HugePages(1));
                }
            }
        }
        self.record_demand();
        self.shrink_to_limit();
    }

    /// `None`: in use with these bounds.
    pub(crate) fn fault(&self, span: PageRange) -> Option<SpanError> {
        let (page, granted) = (span.first, self.granted());
        if page.0 >= G::pages(granted).0 || span.len.0 > G::pages(granted).0 - page.0 {
            return Some(SpanError::NeverGiven(page));
        }
        let (mut id, at) = (G::hugepage(page), G::in_hugepage(page));
        let t = &self.trackers[id.0 as usize];
        if !t.used().contains(at) {
            return Some(SpanError::AlreadyFree(page));
        }
        if !t.starts().contains(at) {
            return Some(SpanError::NeverGiven(page));
        }
        let mut end = t.end_of_span(at);
        let mut len = end - at;
        while end == G::PAGES && len <= span.len.0 && id.0 + 1 < granted.0 {
            id.0 += 1;
            let t = &self.trackers[id.0 as usize];
            if !t.continues() {
                break;
            }
            end = t.end_of_span(0);
            len += end;
        }
        (len != span.len.0).then_some(SpanError::WrongLength(page))
    }

    fn unfit(&self, pages: Pages, align: Pages) -> Option<SpanError> {
        let most = G::pages(self.capacity());
        match () {
            () if pages.0 == 0 => Some(SpanError::Empty),
            () if !align.0.is_power_of_two() => Some(SpanError::Alignment(align)),
            () if pages > most || align > most => Some(SpanError::TooLong(pages.max(align))),
            () => None,
        }
    }

    fn free_span(&mut self, span: PageRange) {
        let id = G::hugepage(span.first);
        if self.trackers[id.0 as usize].is_small() {
            // Its memory may be gone at the next alloc.
            self.backing.review(&self.trackers, &self.floor, span.len);
        }
        match self.trackers[id.0 as usize].place {
            Place::Filler => self.vacate(id, G::in_hugepage(span.first), span.len.0),
            Place::Region => self.vacate_in_region(span, true),
            _ => {
                let large = Large::of::<G>(span);
                if large.tail > 0 {
                    self.vacate(large.last(), 0, large.tail);
                }
                self.put(large.first, large.whole);
            }
        }
    }

    fn count(&mut self, old: u32, new: u32) {
        self.in_use = self.in_use - old + new;
        self.donation.count(old, new);
        self.demand.record(self.in_use);
        self.growth.record(self.in_use);
    }
}

/// Page frames of `S` place short spans, once set.
pub type FrameHeap<F, C, S, P = LongestFreeFirst, G = Huge2M> = Temeraire<F, C, P, Option<ByFrames<S>>, G>;

impl<F: Floor, C: Clock, P: Fit, S: FrameSource, G: Geometry> FrameHeap<F, C, S, P, G> {
    /// Before any grant, with an offline huge frame for each hugepage.
    pub fn set_frames(&mut self, source: S) {
        const { assert!(G::PAGES == PAGES_PER_HUGEPAGE, "frames are pages of the machine's hugepages") };
        debug_assert_eq!(self.granted(), HugePages(0));
        self.placement = Some(ByFrames::new(source));
        self.regions.set_allowed(false);
    }
}

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> SpanSource for Temeraire<F, C, P, K, G> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        if let Some(unfit) = self.unfit(pages, align) {
            return Err(unfit);
        }
        let is_short = pages.0 <= Self::HALF && align.0 < G::PAGES;
        let span = match is_short {
            true => self.alloc_small(pages.0, align.0, density)?,
            false => self.alloc_long(pages.0, align.0)?,
        };
        self.count(0, pages.0);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, _density: Density) -> Result<(), SpanError> {
        if let Some(fault) = self.fault(span) {
            return Err(fault);
        }
        self.count(span.len.0, 0);
        self.free_span(span);
        Ok(())
    }

    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError> {
        if let Some(unfit) = self.unfit(pages, Pages(1)).or_else(|| self.fault(span)) {
            return Err(unfit);
        }
        let zeroed = match pages.cmp(&span.len) {
            Ordering::Equal => true,
            Ordering::Less => {
                self.shorten(span, pages);
                true
            }
            Ordering::Greater => self.lengthen(span, pages)?,
        };
        self.count(span.len.0, pages.0);
        Ok(zeroed)
    }
}

#[cfg(test)]
mod tests;
