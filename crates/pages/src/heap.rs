//! The page heap: routes requests, and keeps every hugepage in one place.
//!
//! **From.** TEMERAIRE §4.1 and Figure 7: up to half a hugepage, the filler; up to a hugepage, the filler if it has room;
//! beyond, a region if there is one with room, else whole hugepages whose last one's slack is donated to the filler (Figure 8).

use crate::backing::{Backing, HugeBacking};
use crate::demand::Demand;
use crate::filler::Filler;
use crate::fit::{Fit, LongestFreeFirst};
use crate::frames::NoFrames;
use crate::huge_cache::CacheLimit;
use crate::ranges::Ranges;
use crate::region::{REGION, Regions};
use crate::release::Pace;
use crate::tracker::{Place, Tracker};
use core::cmp::Ordering;
use craton_base::{
    Clock, Density, Floor, FrameSource, HugePageId, HugePages, NoMemory, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages,
    Span, SpanError, SpanSource, Table,
};

/// Spans of up to half a hugepage always go to the filler.
const HALF: u32 = PAGES_PER_HUGEPAGE / 2;
/// From a region's size, 1 GiB, on, slack is too small to matter.
const HUGE_REQUEST: u32 = REGION * PAGES_PER_HUGEPAGE;

/// A hugepage-aware heap of pages over a floor.
pub struct PageHeap<F, C, P = LongestFreeFirst, S = NoFrames> {
    pub(crate) floor: F,
    pub(crate) clock: C,
    pub(crate) trackers: Table<Tracker>,
    pub(crate) unbacked: Ranges<{ Place::Unbacked as u8 }>,
    pub(crate) cached: Ranges<{ Place::Cached as u8 }>,
    pub(crate) limit: CacheLimit,
    pub(crate) filler: Filler<P, S>,
    pub(crate) regions: Regions,
    pub(crate) backing: Backing,
    pub(crate) demand: Demand,
    pub(crate) pace: Pace,
    pub(crate) granted: HugePages,
    pub(crate) capacity: HugePages,
    in_use: u32,
    /// Pages in spans that always go to the filler.
    small: u32,
    pub(crate) released_total: u64,
}

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// A heap over `floor`, which must grant from its first page and have been granted nothing yet; at most `capacity`
    /// hugepages, each with an entry in `trackers` that is zero when granted.
    pub const fn new(floor: F, clock: C, trackers: Table<Tracker>, capacity: HugePages, backing: HugeBacking) -> Self {
        Self {
            floor,
            clock,
            trackers,
            unbacked: Ranges::EMPTY,
            cached: Ranges::EMPTY,
            limit: CacheLimit::new(),
            filler: Filler::EMPTY,
            regions: Regions::EMPTY,
            backing: Backing::new(backing),
            demand: Demand::NONE,
            pace: Pace::STILL,
            granted: HugePages(0),
            capacity,
            in_use: 0,
            small: 0,
            released_total: 0,
        }
    }

    /// A heap without memory, all zeros if `floor` and `clock` are, so that a static one takes no place in a program's file.
    pub const fn empty(floor: F, clock: C) -> Self {
        Self::new(floor, clock, Table::EMPTY, HugePages(0), HugeBacking::ALWAYS)
    }

    /// Makes an empty heap one as [`PageHeap::new`] makes it, in place: a heap is too large to be moved for nothing.
    pub fn install(&mut self, floor: F, trackers: Table<Tracker>, capacity: HugePages, backing: HugeBacking) {
        debug_assert_eq!(self.granted, HugePages(0));
        (self.floor, self.trackers, self.capacity) = (floor, trackers, capacity);
        self.backing = Backing::new(backing);
    }

    /// Lets page frames say where spans of up to half a hugepage go, and what is left of the hugepages of longer ones, in place of the
    /// filler's choice; before anything is granted. All of their huge frames are offline, and as many as the heap's hugepages.
    pub fn set_frames(&mut self, frames: S) {
        debug_assert_eq!(self.granted, HugePages(0));
        self.filler.set_frames(frames);
        self.regions.set_allowed(false);
    }

    /// Hugepages that the floor granted so far.
    pub fn granted(&self) -> HugePages {
        self.granted
    }

    /// The most hugepages that the floor may be asked for.
    pub fn capacity(&self) -> HugePages {
        self.capacity
    }

    /// Pages in spans.
    pub fn in_use(&self) -> Pages {
        Pages(self.in_use)
    }

    /// The floor below.
    pub fn floor(&self) -> &F {
        &self.floor
    }

    /// Whether spans that cross hugepages may be packed into regions (§4.5), which they may from the start, but not where frames decide.
    pub fn set_regions(&mut self, allowed: bool) {
        self.regions.set_allowed(allowed && !self.filler.has_frames());
    }

    /// Whether a span can be had without memory that the heap does not have yet.
    pub fn has_memory_for(&self, pages: Pages, align: Pages, density: Density) -> bool {
        let (pages, align) = (pages.0, align.0);
        if self.cached.total() >= Pages(pages).hugepages_up() {
            return true;
        }
        if pages >= PAGES_PER_HUGEPAGE || align >= PAGES_PER_HUGEPAGE {
            return false;
        }
        let packing = if pages <= HALF { Filler::<P, S>::packing(pages, align, density) } else { Density::Sparse };
        let found = self.filler.find(&self.trackers, pages, align, packing).or_else(|| {
            (pages <= HALF).then(|| self.filler.find_in_hollow(&self.trackers, pages, align, packing)).flatten()
        });
        found.is_some_and(|(id, at)| self.trackers[id.0 as usize].has_memory(at, pages))
    }

    /// Hugepages that serve the program now: all but those without a page in use.
    pub(crate) fn in_demand(&self) -> HugePages {
        HugePages(self.granted.0 - self.unbacked.total().0 - self.cached.total().0 - self.regions.held().idle)
    }

    fn alloc_span(&mut self, pages: u32, align: u32, density: Density) -> Result<Span, SpanError> {
        if pages <= HALF && align < PAGES_PER_HUGEPAGE {
            return self.alloc_small(pages, align, density);
        }
        let slack = pages.next_multiple_of(PAGES_PER_HUGEPAGE) - pages;
        if slack > 0 && pages < HUGE_REQUEST && align < PAGES_PER_HUGEPAGE {
            if pages < PAGES_PER_HUGEPAGE
                && let Some((id, at)) = self.filler.choose(&self.trackers, pages, align, Density::Sparse)
            {
                return Ok(self.place(id, at, pages));
            }
            if let Some(span) = self.alloc_in_region(pages, align, false) {
                return Ok(span);
            }
            if self.slack_outweighs_small_spans(slack)
                && self.start_region()
                && let Some(span) = self.alloc_in_region(pages, align, false)
            {
                return Ok(span);
            }
        }
        self.alloc_large(pages, align)
            .or_else(|refused| self.alloc_in_need(pages, align, Density::Sparse).ok_or(refused.into()))
    }

    /// A span wherever there is room, after a hugepage was refused: better in bad company than not at all.
    #[cold]
    fn alloc_in_need(&mut self, pages: u32, align: u32, packing: Density) -> Option<Span> {
        if pages < PAGES_PER_HUGEPAGE
            && align < PAGES_PER_HUGEPAGE
            && let Some((id, at)) = self.filler.find_in_need(&self.trackers, pages, align, packing)
        {
            return Some(self.place(id, at, pages));
        }
        self.alloc_in_region(pages, align, true)
    }

    /// Whether what donations leave unused, with this one's, is more than all that could fill it (§4.5).
    fn slack_outweighs_small_spans(&self, more: u32) -> bool {
        let slack = self.filler.slack() + more;
        slack >= self.small && slack >= Regions::LEAST_SLACK
    }

    /// A span inside one hugepage.
    fn alloc_small(&mut self, pages: u32, align: u32, density: Density) -> Result<Span, SpanError> {
        let packing = Filler::<P, S>::packing(pages, align, density);
        if let Some((id, at)) = self.filler.choose(&self.trackers, pages, align, packing) {
            return Ok(self.place(id, at, pages));
        }
        if let Some((id, at)) = self.filler.find_in_hollow(&self.trackers, pages, align, packing) {
            return Ok(self.place(id, at, pages));
        }
        match self.take(HugePages(1), HugePages(1)) {
            Ok(id) => {
                let t = &mut self.trackers[id.0 as usize];
                t.reset();
                t.dense = packing == Density::Dense;
                let zeroed = t.occupy(0, pages);
                self.filler.adopt(&mut self.trackers, id);
                Ok(Span { range: PageRange::new(id.first_page(), Pages(pages)), zeroed })
            }
            Err(refused) => self.alloc_in_need(pages, align, packing).ok_or(refused.into()),
        }
    }

    /// A span at a place that the filler found.
    fn place(&mut self, id: HugePageId, at: u32, pages: u32) -> Span {
        let zeroed = self.filler.occupy(&mut self.trackers, id, at, pages);
        Span { range: PageRange::new(PageId(id.first_page().0 + at), Pages(pages)), zeroed }
    }

    /// A span of one or more whole hugepages; the slack of the last is donated.
    fn alloc_large(&mut self, pages: u32, align: u32) -> Result<Span, NoMemory> {
        let len = Pages(pages).hugepages_up();
        let first = self.take(len, HugePages(align.div_ceil(PAGES_PER_HUGEPAGE).max(1)))?;
        let (whole, tail) = (pages / PAGES_PER_HUGEPAGE, pages % PAGES_PER_HUGEPAGE);
        let mut zeroed = self.occupy_whole(first, HugePages(whole), true);
        if tail > 0 {
            zeroed &= self.donate(HugePageId(first.0 + whole), tail, whole == 0);
        }
        Ok(Span { range: PageRange::new(first.first_page(), Pages(pages)), zeroed })
    }

    /// Marks hugepages as wholly used by one span, which begins there or before; says whether they read as zeros.
    pub(crate) fn occupy_whole(&mut self, first: HugePageId, len: HugePages, begins: bool) -> bool {
        let mut zeroed = true;
        for i in first.0..first.0 + len.0 {
            let t = &mut self.trackers[i as usize];
            t.reset();
            t.place = Place::Large;
            zeroed &= match begins && i == first.0 {
                true => t.occupy(0, PAGES_PER_HUGEPAGE),
                false => t.carry(0, PAGES_PER_HUGEPAGE),
            };
        }
        zeroed
    }

    /// Gives the slack behind the first `pages` of a hugepage to the filler: the span's tail counts as a span of it.
    pub(crate) fn donate(&mut self, id: HugePageId, pages: u32, begins: bool) -> bool {
        let t = &mut self.trackers[id.0 as usize];
        t.reset();
        t.donated = true;
        let zeroed = if begins { t.occupy(0, pages) } else { t.carry(0, pages) };
        self.filler.adopt(&mut self.trackers, id);
        zeroed
    }

    /// Frees pages of one hugepage of the filler; the hugepage leaves it when that was its last span.
    pub(crate) fn vacate(&mut self, id: HugePageId, at: u32, pages: u32) {
        self.filler.update(&mut self.trackers, id, |t| {
            t.vacate(at, pages);
            // Without the tail that brought it here it is a hugepage like any other.
            t.donated &= at != 0;
            // What little is left of a dense hugepage must not keep longer spans off it.
            t.dense &= t.used_pages() >= PAGES_PER_HUGEPAGE / 4;
        });
        let t = &self.trackers[id.0 as usize];
        if t.used_pages() == 0 && !t.collapsing {
            self.retire(id);
        } else if t.broken {
            // What is broken already loses nothing by it (TEMERAIRE §4.6, "freed to the system at once").
            self.unback_free(id, at, pages);
        }
    }

    /// Takes a hugepage without spans out of the filler.
    pub(crate) fn retire(&mut self, id: HugePageId) {
        self.filler.expel(&mut self.trackers, id);
        let was_broken = self.trackers[id.0 as usize].broken;
        self.unguard(id, HugePages(1));
        // What is left of a broken hugepage would keep the next use on small pages.
        if was_broken && self.will_be_huge(id) && self.floor.unback(id.range()).is_ok() {
            let t = &mut self.trackers[id.0 as usize];
            self.released_total += u64::from(t.backed_pages());
            t.unbacked();
            self.unbacked.insert(&mut self.trackers, id, HugePages(1));
            self.note_demand();
        } else {
            self.put(id, HugePages(1));
        }
    }

    /// What is wrong with a span that is given back; `None` if it is out, just so.
    pub(crate) fn fault(&self, span: PageRange) -> Option<SpanError> {
        let page = span.first;
        if page.0 >= self.granted.pages().0 || span.len.0 > self.granted.pages().0 - page.0 {
            return Some(SpanError::NeverGiven(page));
        }
        let (mut id, at) = (page.hugepage(), page.in_hugepage());
        let t = &self.trackers[id.0 as usize];
        if !t.used().contains(at) {
            return Some(SpanError::AlreadyFree(page));
        }
        if !t.starts().contains(at) {
            return Some(SpanError::NeverGiven(page));
        }
        let mut end = t.end_of_span(at);
        let mut len = end - at;
        while end == PAGES_PER_HUGEPAGE && len <= span.len.0 && id.0 + 1 < self.granted.0 {
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

    /// What is wrong with a length and an alignment.
    fn unfit(&self, pages: Pages, align: Pages) -> Option<SpanError> {
        let most = self.capacity.pages();
        match () {
            () if pages.0 == 0 => Some(SpanError::Empty),
            () if !align.0.is_power_of_two() => Some(SpanError::Alignment(align)),
            () if pages > most || align > most => Some(SpanError::TooLong(pages.max(align))),
            () => None,
        }
    }

    pub(crate) fn free_span(&mut self, span: PageRange) {
        let (first, at) = (span.first.hugepage(), span.first.in_hugepage());
        match self.trackers[first.0 as usize].place {
            Place::Filler => self.vacate(first, at, span.len.0),
            Place::Region => self.free_in_region(span),
            _ => {
                let (whole, tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
                if tail > 0 {
                    self.vacate(HugePageId(first.0 + whole), 0, tail);
                }
                self.put(first, HugePages(whole));
            }
        }
    }

    /// Counts `new` pages in a span instead of `old`.
    pub(crate) fn count(&mut self, old: u32, new: u32) {
        let small = |pages: u32| if pages <= HALF { pages } else { 0 };
        self.in_use = self.in_use - old + new;
        self.small = self.small - small(old) + small(new);
        self.demand.note(self.in_use);
    }
}

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> SpanSource for PageHeap<F, C, P, S> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        if let Some(unfit) = self.unfit(pages, align) {
            return Err(unfit);
        }
        let span = self.alloc_span(pages.0, align.0, density)?;
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
