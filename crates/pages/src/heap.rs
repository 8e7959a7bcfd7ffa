//! The page heap: routes requests and keeps every hugepage in one place.
//!
//! **From.** TEMERAIRE §4.1 and Figure 7: up to half a hugepage, the filler; up to a hugepage, the filler if it has room;
//! beyond, whole hugepages whose last one's slack is donated to the filler.

use crate::filler::Filler;
use crate::huge_cache::CacheLimit;
use crate::ranges::Ranges;
use crate::tracker::{Place, Tracker};
use core::cmp::Ordering;
use craton_base::{
    Advice, Clock, Density, Floor, HugePageId, HugePages, NoMemory, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, Span,
    SpanSource, Table,
};

/// From which hugepage of the region on hugepages are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HugeBacking {
    /// The first hugepage that is; `HugePageId(u32::MAX)` for never.
    pub from: HugePageId,
}

impl HugeBacking {
    /// Small heaps stay on small pages: the last, partly used hugepage of a heap of 16 MiB wastes an eighth at the most.
    pub const AUTO: Self = Self { from: HugePageId(8) };
    /// From the first byte.
    pub const ALWAYS: Self = Self { from: HugePageId(0) };
    /// Not at all.
    pub const NEVER: Self = Self { from: HugePageId(u32::MAX) };
}

/// Where the region's pages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageHeapStats {
    /// Hugepages that the floor granted.
    pub granted: HugePages,
    /// Pages in spans.
    pub in_use: Pages,
    /// Free pages that still have memory: on whole free hugepages.
    pub cached: Pages,
    /// Free pages that still have memory: between the spans of partly used hugepages.
    pub free_backed: Pages,
    /// Pages given back to the system since the start.
    pub released_total: u64,
}

/// A hugepage-aware heap of pages over a floor.
pub struct PageHeap<F, C> {
    pub(crate) floor: F,
    pub(crate) clock: C,
    pub(crate) trackers: Table<Tracker>,
    pub(crate) unbacked: Ranges<{ Place::Unbacked as u8 }>,
    pub(crate) cached: Ranges<{ Place::Cached as u8 }>,
    pub(crate) limit: CacheLimit,
    pub(crate) filler: Filler,
    pub(crate) granted: HugePages,
    pub(crate) capacity: HugePages,
    pub(crate) backing: HugeBacking,
    in_use: Pages,
    pub(crate) released_total: u64,
}

impl<F: Floor, C: Clock> PageHeap<F, C> {
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
            granted: HugePages(0),
            capacity,
            backing,
            in_use: Pages(0),
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
        (self.floor, self.trackers, self.capacity, self.backing) = (floor, trackers, capacity, backing);
    }

    /// Hugepages that the floor granted so far.
    pub fn granted(&self) -> HugePages {
        self.granted
    }

    /// Pages in spans.
    pub fn in_use(&self) -> Pages {
        self.in_use
    }

    /// Hugepages that may have memory: those in use and those cached.
    pub fn backed(&self) -> HugePages {
        HugePages(self.granted.0 - self.unbacked.total().0)
    }

    /// The floor below.
    pub fn floor(&self) -> &F {
        &self.floor
    }

    /// From where on hugepages are asked for.
    pub fn backing(&self) -> HugeBacking {
        self.backing
    }

    /// Changes from where on hugepages are asked for; what has been granted already is advised anew.
    pub fn set_backing(&mut self, backing: HugeBacking) {
        let old = core::mem::replace(&mut self.backing, backing);
        if old.from.0 < backing.from.0 {
            self.advise(old.from, HugePageId(backing.from.0.min(self.granted.0)), Advice::Small);
        } else {
            self.advise(backing.from, HugePageId(old.from.0.min(self.granted.0)), Advice::Huge);
        }
    }

    /// Counts, all exact but for [`PageHeapStats::free_backed`] and [`PageHeapStats::cached`], which count pages that were
    /// handed out since they last lost their memory, touched by the program or not.
    pub fn stats(&self) -> PageHeapStats {
        let mut s =
            PageHeapStats { granted: self.granted, released_total: self.released_total, ..PageHeapStats::default() };
        for i in 0..self.granted.0 as usize {
            let t = &self.trackers[i];
            match t.place {
                Place::Large => s.in_use.0 += PAGES_PER_HUGEPAGE,
                Place::Filler => {
                    s.in_use.0 += t.used_pages();
                    s.free_backed.0 += t.touched.minus(t.used()).len();
                }
                Place::Cached => s.cached.0 += t.touched.len(),
                Place::Unbacked | Place::Beyond => {}
            }
        }
        s
    }

    /// A span inside one hugepage.
    pub(crate) fn alloc_small(&mut self, pages: u32, align: u32) -> Result<Span, NoMemory> {
        let (id, at) = match self.filler.find(&self.trackers, pages, align) {
            Some(place) => place,
            None => {
                let id = self.take(HugePages(1), HugePages(1))?;
                self.trackers[id.0 as usize].reset();
                self.filler.adopt(&mut self.trackers, id, false);
                (id, 0)
            }
        };
        let zeroed = self.filler.update(&mut self.trackers, id, |t| t.occupy(at, pages));
        Ok(Span { range: PageRange::new(PageId(id.first_page().0 + at), Pages(pages)), zeroed })
    }

    /// A span of one or more whole hugepages; the slack of the last is donated.
    pub(crate) fn alloc_large(&mut self, pages: u32, align: u32) -> Result<Span, NoMemory> {
        let len = Pages(pages).hugepages_up();
        let first = self.take(len, HugePages(align.div_ceil(PAGES_PER_HUGEPAGE).max(1)))?;
        let tail = pages % PAGES_PER_HUGEPAGE;
        let whole = pages / PAGES_PER_HUGEPAGE;
        let mut zeroed = self.occupy_whole(first, HugePages(whole));
        if tail > 0 {
            zeroed &= self.donate(HugePageId(first.0 + whole), tail);
        }
        Ok(Span { range: PageRange::new(first.first_page(), Pages(pages)), zeroed })
    }

    /// Marks hugepages as wholly used by one span; says whether they read as zeros.
    pub(crate) fn occupy_whole(&mut self, first: HugePageId, len: HugePages) -> bool {
        let mut zeroed = true;
        for i in first.0..first.0 + len.0 {
            let t = &mut self.trackers[i as usize];
            t.reset();
            t.place = Place::Large;
            zeroed &= t.occupy(0, PAGES_PER_HUGEPAGE);
        }
        zeroed
    }

    /// Gives the slack behind the first `pages` of a hugepage to the filler: the span's tail counts as a span of it.
    pub(crate) fn donate(&mut self, id: HugePageId, pages: u32) -> bool {
        let t = &mut self.trackers[id.0 as usize];
        t.reset();
        let zeroed = t.occupy(0, pages);
        self.filler.adopt(&mut self.trackers, id, true);
        zeroed
    }

    /// Frees pages of one hugepage of the filler; the hugepage leaves it when that was its last span.
    pub(crate) fn vacate(&mut self, id: HugePageId, at: u32, pages: u32) {
        self.filler.update(&mut self.trackers, id, |t| {
            t.vacate(at, pages);
            // Without the tail that brought it here it is a hugepage like any other.
            t.donated &= at != 0;
        });
        if self.trackers[id.0 as usize].used_pages() == 0 {
            self.filler.expel(&mut self.trackers, id);
            self.put(id, HugePages(1));
        }
    }
}

impl<F: Floor, C: Clock> SpanSource for PageHeap<F, C> {
    fn alloc(&mut self, pages: Pages, align: Pages, _density: Density) -> Result<Span, NoMemory> {
        debug_assert!(align.0.is_power_of_two());
        if pages.0 == 0 || pages.0 > self.capacity.pages().0 || align.0 > self.capacity.pages().0 {
            return Err(NoMemory);
        }
        let span = if pages.0 < PAGES_PER_HUGEPAGE && align.0 < PAGES_PER_HUGEPAGE {
            self.alloc_small(pages.0, align.0)?
        } else {
            self.alloc_large(pages.0, align.0)?
        };
        self.in_use.0 += pages.0;
        Ok(span)
    }

    fn free(&mut self, span: PageRange, _density: Density) {
        self.in_use.0 -= span.len.0;
        let (first, at) = (span.first.hugepage(), span.first.in_hugepage());
        let place = self.trackers[first.0 as usize].place;
        if place == Place::Filler {
            self.vacate(first, at, span.len.0);
            return;
        }
        debug_assert!(place == Place::Large && at == 0);
        let (whole, tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
        if tail > 0 {
            self.vacate(HugePageId(first.0 + whole), 0, tail);
        }
        self.put(first, HugePages(whole));
    }

    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        if pages.0 == 0 || pages.0 > self.capacity.pages().0 {
            return Err(NoMemory);
        }
        let zeroed = match pages.0.cmp(&span.len.0) {
            Ordering::Equal => true,
            Ordering::Less => {
                self.shorten(span, pages);
                true
            }
            Ordering::Greater => self.lengthen(span, pages)?,
        };
        self.in_use.0 = self.in_use.0 - span.len.0 + pages.0;
        Ok(zeroed)
    }
}
