//! The page heap: routes requests and keeps every hugepage in one place.
//!
//! **From.** TEMERAIRE §4.1 and Figure 7: up to half a hugepage, the filler; up to a hugepage, the filler if it has room;
//! beyond, whole hugepages whose last one's slack is donated to the filler.

use crate::filler::{FAMILIES, Filler};
use crate::huge_cache::CacheLimit;
use crate::lists::LISTS;
use crate::ranges::Ranges;
use crate::tracker::{Place, Tracker};
use core::cmp::Ordering;
use craton_base::{
    Advice, Clock, Density, Floor, HugePageId, HugePages, NoMemory, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, Span,
    SpanSource, Table,
};

/// Address space is made usable in steps of at least 32 MiB.
const GROW_MIN: HugePages = HugePages(16);

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
    clock: C,
    pub(crate) trackers: Table<Tracker>,
    pub(crate) unbacked: Ranges<{ Place::Unbacked as u8 }>,
    pub(crate) cached: Ranges<{ Place::Cached as u8 }>,
    limit: CacheLimit,
    pub(crate) filler: Filler,
    pub(crate) granted: HugePages,
    capacity: HugePages,
    backing: HugeBacking,
    in_use: Pages,
    released_total: u64,
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

    /// Hugepages that serve the program now.
    pub(crate) fn demand(&self) -> HugePages {
        HugePages(self.granted.0 - self.unbacked.total().0 - self.cached.total().0)
    }

    /// Takes whole free hugepages: with memory if there are any.
    fn take(&mut self, len: HugePages, align: HugePages) -> Result<HugePageId, NoMemory> {
        let id = match self.cached.take(&mut self.trackers, len, align) {
            Some(id) => id,
            None => {
                let id = match self.unbacked.take(&mut self.trackers, len, align) {
                    Some(id) => id,
                    None => self.grow(len, align).or_else(|refused| self.take_mixed(len, align).ok_or(refused))?,
                };
                let now = self.clock.now_ns();
                self.limit.missed(len, self.demand(), now);
                id
            }
        };
        let now = self.clock.now_ns();
        self.limit.note(self.demand(), now);
        Ok(id)
    }

    /// Takes hugepages from where free ones of both kinds, or not yet granted ones, lie side by side: a walk over the region, and
    /// so the last resort.
    #[cold]
    fn take_mixed(&mut self, len: HugePages, align: HugePages) -> Option<HugePageId> {
        let mut start = 0u32;
        while start.checked_add(len.0)? <= self.capacity.0 {
            let end = (start + len.0).min(self.granted.0);
            // The last one in the way; the next place to look is behind it.
            let taken = (start..end).rev().find(|i| {
                let place = self.trackers[*i as usize].place;
                place != Place::Unbacked && place != Place::Cached
            });
            match taken {
                Some(i) => start = (i + 1).next_multiple_of(align.0),
                None => {
                    let first = HugePageId(start);
                    return self.free_from(first, len).then(|| {
                        self.take_from(first, len);
                        first
                    });
                }
            }
        }
        None
    }

    /// Makes more address space usable and takes `len` hugepages of it.
    #[cold]
    fn grow(&mut self, len: HugePages, align: HugePages) -> Result<HugePageId, NoMemory> {
        // What is free at the end of the region already counts.
        let free = self.unbacked.run_at_end(&self.trackers);
        let start = (self.granted.0 - free.0).next_multiple_of(align.0);
        self.grow_to(HugePages(start.checked_add(len.0).ok_or(NoMemory)?))?;
        Ok(self.unbacked.take(&mut self.trackers, len, align).expect("just granted"))
    }

    /// Makes at least `need` hugepages usable, and more if that is not refused: steps are large, so that they are rare.
    fn grow_to(&mut self, need: HugePages) -> Result<(), NoMemory> {
        if need > self.capacity {
            return Err(NoMemory);
        }
        let step = (self.granted.0 / 4).max(GROW_MIN.0);
        let generous = HugePages(need.0.max(self.granted.0 + step).min(self.capacity.0));
        let granted = match self.floor.reserve(generous) {
            Ok(()) => generous,
            Err(NoMemory) => {
                self.floor.reserve(need)?;
                need
            }
        };
        let old = core::mem::replace(&mut self.granted, granted);
        self.unbacked.set_end(granted);
        self.cached.set_end(granted);
        self.advise(HugePageId(self.backing.from.0.max(old.0)), HugePageId(granted.0), Advice::Huge);
        self.unbacked.insert(&mut self.trackers, HugePageId(old.0), HugePages(granted.0 - old.0));
        Ok(())
    }

    fn advise(&mut self, from: HugePageId, to: HugePageId, advice: Advice) {
        if from < to {
            self.floor.advise(from.run(HugePages(to.0 - from.0)), advice);
        }
    }

    /// Takes whole hugepages back; those above the cache's limit lose their memory.
    fn put(&mut self, first: HugePageId, len: HugePages) {
        self.cached.insert(&mut self.trackers, first, len);
        let now = self.clock.now_ns();
        self.limit.note(self.demand(), now);
        let excess = self.cached.total().0.saturating_sub(self.limit.limit().0);
        self.shrink_cache(HugePages(excess));
    }

    /// Takes the memory of up to `want` cached hugepages away; returns how many pages lost theirs.
    fn shrink_cache(&mut self, want: HugePages) -> u64 {
        let mut pages = 0;
        let mut left = want.0;
        while left > 0 {
            let Some((first, len)) = self.cached.any(&self.trackers) else { break };
            let part = HugePages(len.0.min(left));
            if self.floor.unback(first.run(part)).is_err() {
                break;
            }
            self.cached.take_at(&mut self.trackers, first, part);
            for i in first.0..first.0 + part.0 {
                let t = &mut self.trackers[i as usize];
                pages += u64::from(t.touched.len());
                t.touched = craton_base::Bits256::EMPTY;
            }
            self.unbacked.insert(&mut self.trackers, first, part);
            left -= part.0;
        }
        self.released_total += pages;
        pages
    }

    /// A span inside one hugepage.
    fn alloc_small(&mut self, pages: u32, align: u32) -> Result<Span, NoMemory> {
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
    fn alloc_large(&mut self, pages: u32, align: u32) -> Result<Span, NoMemory> {
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
    fn occupy_whole(&mut self, first: HugePageId, len: HugePages) -> bool {
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
    fn donate(&mut self, id: HugePageId, pages: u32) -> bool {
        let t = &mut self.trackers[id.0 as usize];
        t.reset();
        let zeroed = t.occupy(0, pages);
        self.filler.adopt(&mut self.trackers, id, true);
        zeroed
    }

    /// Frees pages of one hugepage of the filler; the hugepage leaves it when that was its last span.
    fn vacate(&mut self, id: HugePageId, at: u32, pages: u32) {
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

    /// Gives memory back to the system: whole free hugepages first, then, if that is not enough and `break_hugepages`
    /// allows, the free pages of partly used ones, the emptiest first (§4.6). Returns how many pages lost theirs.
    pub fn release(&mut self, pages: Pages, break_hugepages: bool) -> u64 {
        let mut done = self.shrink_cache(pages.hugepages_up().min(self.cached.total()));
        if !break_hugepages {
            return done;
        }
        for family in (0..FAMILIES).rev() {
            let mut below = LISTS;
            while done < u64::from(pages.0)
                && let Some((_, at)) = self.filler.emptiest(family, below)
            {
                below = at;
                // Releasing moves the hugepage to another family, so the list's head is asked for each time; those that
                // have nothing to give stay, and are walked past.
                let mut skip = 0;
                while done < u64::from(pages.0) {
                    let Some(id) = self.filler.walk(&self.trackers, family, at).nth(skip) else { break };
                    match self.release_free_pages(id) {
                        0 => skip += 1,
                        n => done += n,
                    }
                }
            }
        }
        done
    }

    /// Unbacks the free pages of a hugepage in the filler.
    fn release_free_pages(&mut self, id: HugePageId) -> u64 {
        let t = &self.trackers[id.0 as usize];
        let gone = t.touched.minus(t.used());
        let mut pages = 0;
        let keep = gone.complement();
        for (at, len) in keep.clear_runs() {
            let range = PageRange::new(PageId(id.first_page().0 + at), Pages(len));
            if self.floor.unback(range).is_err() {
                continue;
            }
            pages += u64::from(len);
            self.filler.update(&mut self.trackers, id, |t| {
                t.touched.remove(at, len);
                t.broken = true;
            });
        }
        self.released_total += pages;
        pages
    }

    /// Lengthens a span whose last hugepage is `id`, inside that hugepage.
    fn extend_within(&mut self, id: HugePageId, at: u32, pages: u32) -> Result<bool, NoMemory> {
        let t = &self.trackers[id.0 as usize];
        if t.place != Place::Filler || at + pages > PAGES_PER_HUGEPAGE || t.used().count(at, pages) > 0 {
            return Err(NoMemory);
        }
        Ok(self.filler.update(&mut self.trackers, id, |t| t.extend(at, pages)))
    }

    /// Lengthens a span that starts at a hugepage's start over the free hugepages behind it.
    fn extend_across(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        let first = span.first.hugepage();
        let (old_whole, old_tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
        let (new_whole, new_tail) = (pages.0 / PAGES_PER_HUGEPAGE, pages.0 % PAGES_PER_HUGEPAGE);
        let end = HugePageId(first.0 + span.len.hugepages_up().0);
        let more = HugePages(pages.hugepages_up().0 - span.len.hugepages_up().0);
        if old_tail > 0 {
            // The rest of the present tail must be free.
            let id = HugePageId(first.0 + old_whole);
            let t = &self.trackers[id.0 as usize];
            if t.place != Place::Filler || t.used_pages() != old_tail {
                return Err(NoMemory);
            }
        }
        if !self.free_from(end, more) {
            return Err(NoMemory);
        }
        let mut zeroed = true;
        if old_tail > 0 {
            let id = HugePageId(first.0 + old_whole);
            self.filler.expel(&mut self.trackers, id);
            let t = &mut self.trackers[id.0 as usize];
            zeroed &= t.extend(old_tail, PAGES_PER_HUGEPAGE - old_tail);
            t.place = Place::Large;
            (t.donated, t.broken) = (false, false);
        }
        self.take_from(end, more);
        let whole_more = HugePages(first.0 + new_whole - end.0);
        zeroed &= self.occupy_whole(end, whole_more);
        if new_tail > 0 {
            zeroed &= self.donate(HugePageId(first.0 + new_whole), new_tail);
        }
        Ok(zeroed)
    }

    /// Whether the `len` hugepages from `at` on are free, growing the region when it ends there.
    fn free_from(&mut self, at: HugePageId, len: HugePages) -> bool {
        let mut end = at.0;
        while end < at.0 + len.0 {
            let run = self.cached.run_from(&self.trackers, HugePageId(end)).0
                + self.unbacked.run_from(&self.trackers, HugePageId(end)).0;
            if run == 0 {
                break;
            }
            end += run;
        }
        if end >= at.0 + len.0 {
            return true;
        }
        if end != self.granted.0 {
            return false;
        }
        self.grow_to(HugePages(at.0 + len.0)).is_ok()
    }

    /// Takes the free hugepages `at..at + len`, of whichever kind they are.
    fn take_from(&mut self, at: HugePageId, len: HugePages) {
        let (mut at, end) = (at.0, at.0 + len.0);
        while at < end {
            let id = HugePageId(at);
            let cached = self.cached.run_from(&self.trackers, id).0.min(end - at);
            let unbacked = self.unbacked.run_from(&self.trackers, id).0.min(end - at);
            if cached > 0 {
                self.cached.take_at(&mut self.trackers, id, HugePages(cached));
            } else {
                self.unbacked.take_at(&mut self.trackers, id, HugePages(unbacked));
            }
            at += cached + unbacked;
        }
        let now = self.clock.now_ns();
        self.limit.note(self.demand(), now);
    }

    /// Makes a span shorter.
    fn shorten(&mut self, span: PageRange, pages: Pages) {
        let (id, at) = (span.first.hugepage(), span.first.in_hugepage());
        if self.trackers[id.0 as usize].place == Place::Filler {
            self.filler.update(&mut self.trackers, id, |t| t.truncate(at + pages.0, span.len.0 - pages.0));
        } else {
            self.shorten_across(span, pages);
        }
    }

    /// Makes a span longer; says whether what was added reads as zeros.
    fn lengthen(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        let (old, new) = (span.len.0, pages.0);
        let (id, at) = (span.first.hugepage(), span.first.in_hugepage());
        if self.trackers[id.0 as usize].place == Place::Filler {
            // A span that fills its hugepage leaves the filler.
            return if at == 0 && new >= PAGES_PER_HUGEPAGE {
                self.extend_across(span, pages)
            } else {
                self.extend_within(id, at + old, new - old)
            };
        }
        let (old_whole, old_tail) = (old / PAGES_PER_HUGEPAGE, old % PAGES_PER_HUGEPAGE);
        if old_tail > 0 && old_whole == new / PAGES_PER_HUGEPAGE {
            self.extend_within(HugePageId(id.0 + old_whole), old_tail, new - old)
        } else {
            self.extend_across(span, pages)
        }
    }

    /// Shortens a span of several hugepages: whole hugepages at its end come free, the new last one's rest is donated.
    fn shorten_across(&mut self, span: PageRange, pages: Pages) {
        let first = span.first.hugepage();
        let (old_whole, old_tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
        let (new_whole, new_tail) = (pages.0 / PAGES_PER_HUGEPAGE, pages.0 % PAGES_PER_HUGEPAGE);
        let last = HugePageId(first.0 + old_whole);
        if old_whole == new_whole && new_tail > 0 {
            self.filler.update(&mut self.trackers, last, |t| t.truncate(new_tail, old_tail - new_tail));
            return;
        }
        if old_tail > 0 {
            self.vacate(last, 0, old_tail);
        }
        let mut free_from = first.0 + new_whole;
        if new_tail > 0 {
            self.donate(HugePageId(free_from), new_tail);
            free_from += 1;
        }
        if free_from < last.0 {
            self.put(HugePageId(free_from), HugePages(last.0 - free_from));
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
