//! Packs spans across hugepages, for programs whose spans leave more slack than they have small spans to fill it.
//!
//! **From.** TEMERAIRE §4.5. A region is 1 GiB, found by the best fit among all of its pages; regions are sorted by their
//! longest free range. The bitmaps are those of its hugepages' trackers. A region without spans is given up.
//!
//! **State.** Regions begin at multiples of their size, so that a page's region is known; the first tracker of one holds its
//! longest free range and links it into a bin by that range's logarithm.
//!
//! **Invariants.** P8: `held` adds up what the regions' hugepages hold; a region is in the bin that its longest free range names.
//!
//! **Cost.** A request walks one region's trackers, 512 of two cache lines: little beside touching the megabyte it asks for.

use crate::fit::Fit;
use crate::heap::PageHeap;
use crate::tracker::{Place, Tracker};
use craton_base::{
    Clock, Floor, FrameSource, HugePageId, HugePages, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, Span, Table,
};

/// Hugepages in a region: 1 GiB.
pub(crate) const REGION: u32 = if PAGES_PER_HUGEPAGE < 256 { 2 } else { 512 };
const REGION_PAGES: u32 = REGION * PAGES_PER_HUGEPAGE;
const BINS: usize = (u32::BITS - REGION_PAGES.leading_zeros()) as usize;
/// Regions of a bin that are looked at for room.
const LOOKS: usize = 4;

/// The regions.
pub(crate) struct Regions {
    /// First hugepages of regions, plus 1, by the logarithm of the longest free range.
    bins: [u32; BINS],
    held: Held,
    forbidden: bool,
}

/// What hugepages of regions amount to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Held {
    /// Hugepages without a used page.
    pub(crate) idle: u32,
    /// Those of them with memory.
    pub(crate) idle_backed: u32,
    /// Their pages with memory.
    pub(crate) idle_pages: u32,
    /// Free pages with memory between spans.
    pub(crate) between: u32,
}

impl Held {
    pub(crate) fn of(t: &Tracker) -> Self {
        let backed = t.backed_pages();
        match t.used_pages() {
            0 => Self { idle: 1, idle_backed: u32::from(backed > 0), idle_pages: backed, between: 0 },
            used => Self { between: backed - used, ..Self::default() },
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.idle += more.idle;
        self.idle_backed += more.idle_backed;
        self.idle_pages += more.idle_pages;
        self.between += more.between;
    }

    fn sub(&mut self, less: Self) {
        self.idle -= less.idle;
        self.idle_backed -= less.idle_backed;
        self.idle_pages -= less.idle_pages;
        self.between -= less.between;
    }
}

/// The parts of a range in each hugepage: which, the first page in it, and how many.
fn parts(range: PageRange) -> impl Iterator<Item = (HugePageId, u32, u32)> {
    let (mut at, end) = (range.first, range.end());
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (id, first) = (at.hugepage(), at.in_hugepage());
        let len = (PAGES_PER_HUGEPAGE - first).min(end.0 - at.0);
        at.0 += len;
        Some((id, first, len))
    })
}

fn bin(longest: u32) -> usize {
    (u32::BITS - longest.leading_zeros()).saturating_sub(1) as usize
}

/// The first hugepage of the region around a hugepage.
fn head_of(id: HugePageId) -> HugePageId {
    HugePageId(id.0 & !(REGION - 1))
}

/// Tells `each` the free ranges of a region: the first page, counted from the region's, and the length.
fn free_ranges(trackers: &Table<Tracker>, head: HugePageId, mut each: impl FnMut(u32, u32)) {
    let (mut start, mut len) = (0, 0);
    for i in 0..REGION {
        let t = &trackers[(head.0 + i) as usize];
        let base = i * PAGES_PER_HUGEPAGE;
        if t.used_pages() == 0 {
            if len == 0 {
                start = base;
            }
            len += PAGES_PER_HUGEPAGE;
            continue;
        }
        for (first, run) in t.used().clear_runs() {
            if first == 0 && len > 0 {
                len += run;
            } else {
                if len > 0 {
                    each(start, len);
                }
                (start, len) = (base + first, run);
            }
            if first + run < PAGES_PER_HUGEPAGE {
                each(start, len);
                len = 0;
            }
        }
        if t.used().contains(PAGES_PER_HUGEPAGE - 1) && len > 0 {
            each(start, len);
            len = 0;
        }
    }
    if len > 0 {
        each(start, len);
    }
}

/// The length of a region's longest free range.
pub(crate) fn longest(trackers: &Table<Tracker>, head: HugePageId) -> u32 {
    let mut longest = 0;
    free_ranges(trackers, head, |_, len| longest = longest.max(len));
    longest
}

impl Regions {
    pub(crate) const EMPTY: Self =
        Self { bins: [0; BINS], held: Held { idle: 0, idle_backed: 0, idle_pages: 0, between: 0 }, forbidden: false };
    /// Slack, in pages, below which a region is not worth its trackers: a 64th of it, 16 MiB.
    pub(crate) const LEAST_SLACK: u32 = REGION.div_ceil(64) * PAGES_PER_HUGEPAGE;

    pub(crate) fn set_allowed(&mut self, allowed: bool) {
        self.forbidden = !allowed;
    }

    /// What their hugepages hold.
    pub(crate) fn held(&self) -> Held {
        self.held
    }

    /// Changes the tracker of a region's hugepage.
    pub(crate) fn change<R>(&mut self, t: &mut Tracker, change: impl FnOnce(&mut Tracker) -> R) -> R {
        self.held.sub(Held::of(t));
        let result = change(t);
        self.held.add(Held::of(t));
        result
    }

    /// Walks all regions.
    pub(crate) fn walk<'a>(&'a self, trackers: &'a Table<Tracker>) -> impl Iterator<Item = HugePageId> + use<'a> {
        self.bins.iter().flat_map(move |head| {
            let mut next = head.checked_sub(1);
            core::iter::from_fn(move || {
                let id = next?;
                next = trackers[id as usize].next.checked_sub(1);
                Some(HugePageId(id))
            })
        })
    }

    /// Whether a region is in the bin that its longest free range names.
    pub(crate) fn is_listed(&self, trackers: &Table<Tracker>, head: HugePageId) -> bool {
        let mut at = self.bins[bin(trackers[head.0 as usize].run)].checked_sub(1);
        while let Some(id) = at {
            if id == head.0 {
                return true;
            }
            at = trackers[id as usize].next.checked_sub(1);
        }
        false
    }

    fn link(&mut self, trackers: &mut Table<Tracker>, head: HugePageId) {
        let longest = longest(trackers, head);
        let first = core::mem::replace(&mut self.bins[bin(longest)], head.0 + 1);
        if let Some(first) = first.checked_sub(1) {
            trackers[first as usize].prev = head.0 + 1;
        }
        let t = &mut trackers[head.0 as usize];
        (t.run, t.next, t.prev) = (longest, first, 0);
    }

    fn unlink(&mut self, trackers: &mut Table<Tracker>, head: HugePageId) {
        let t = &mut trackers[head.0 as usize];
        let (longest, next, prev) = (t.run, t.next, t.prev);
        (t.next, t.prev) = (0, 0);
        if let Some(next) = next.checked_sub(1) {
            trackers[next as usize].prev = prev;
        }
        match prev.checked_sub(1) {
            Some(prev) => trackers[prev as usize].next = next,
            None => self.bins[bin(longest)] = next,
        }
    }

    /// The best place for a span: in a region with the smallest longest free range that will do, the smallest free range. Of
    /// regions with about the same, `looks` are looked at.
    fn find(&self, trackers: &Table<Tracker>, pages: u32, align: u32, looks: usize) -> Option<PageId> {
        (bin(pages)..BINS).find_map(|b| {
            let mut at = self.bins[b].checked_sub(1);
            for _ in 0..looks {
                let head = HugePageId(at?);
                if trackers[head.0 as usize].run >= pages
                    && let Some(place) = Self::best_fit(trackers, head, pages, align)
                {
                    return Some(place);
                }
                at = trackers[head.0 as usize].next.checked_sub(1);
            }
            None
        })
    }

    fn best_fit(trackers: &Table<Tracker>, head: HugePageId, pages: u32, align: u32) -> Option<PageId> {
        let mut best: Option<(u32, u32)> = None;
        free_ranges(trackers, head, |first, len| {
            let start = head.first_page().0 + first;
            let fits = |at: &u32| at - start <= len && len - (at - start) >= pages;
            if let Some(at) = start.checked_next_multiple_of(align).filter(fits)
                && best.is_none_or(|(_, l)| len < l)
            {
                best = Some((at, len));
            }
        });
        best.map(|(at, _)| PageId(at))
    }
}

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// Makes a region of hugepages without memory; `false` when there are none.
    #[cold]
    pub(crate) fn start_region(&mut self) -> bool {
        if self.regions.forbidden {
            return false;
        }
        let size = HugePages(REGION);
        let taken = self.take_granted_or_grow(size, size, 0).ok();
        let Some(head) = taken else { return false };
        for i in head.0..head.0 + REGION {
            let t = &mut self.trackers[i as usize];
            t.reset();
            t.place = Place::Region;
            self.regions.held.add(Held::of(t));
        }
        self.regions.link(&mut self.trackers, head);
        true
    }

    /// A span of a region that has room for it; `in_need`, every region is looked at.
    pub(crate) fn alloc_in_region(&mut self, pages: u32, align: u32, in_need: bool) -> Option<Span> {
        if pages > REGION_PAGES {
            return None;
        }
        let looks = if in_need { usize::MAX } else { LOOKS };
        let range = PageRange::new(self.regions.find(&self.trackers, pages, align, looks)?, Pages(pages));
        let zeroed = self.occupy_in_region(range, true);
        Some(Span { range, zeroed })
    }

    /// Marks pages of a region used, by a span that begins with them or goes on there.
    pub(crate) fn occupy_in_region(&mut self, range: PageRange, begins: bool) -> bool {
        let head = head_of(range.first.hugepage());
        self.regions.unlink(&mut self.trackers, head);
        let (mut zeroed, mut missing) = (true, 0);
        for (id, at, len) in parts(range) {
            let huge = self.will_be_huge(id);
            let first = at == range.first.in_hugepage() && id == range.first.hugepage();
            zeroed &= self.regions.change(&mut self.trackers[id.0 as usize], |t| {
                if t.backed_pages() == 0 {
                    t.intact = huge;
                    missing += 1;
                }
                match (first, begins, at) {
                    (true, true, _) => t.occupy(at, len),
                    // The rest of a hugepage that the span has reached already.
                    (true, false, 1..) => t.extend(at, len),
                    _ => t.carry(at, len),
                }
            });
        }
        self.regions.link(&mut self.trackers, head);
        if missing > 0 {
            let now = self.clock.now_ns();
            self.limit.missed(HugePages(missing), self.in_demand(), now);
        }
        self.note_demand();
        zeroed
    }

    /// Frees a span of a region.
    pub(crate) fn free_in_region(&mut self, span: PageRange) {
        self.vacate_in_region(span, true);
    }

    /// Frees pages of a region: a whole span, or the end of one that becomes shorter.
    pub(crate) fn vacate_in_region(&mut self, range: PageRange, whole: bool) {
        let head = head_of(range.first.hugepage());
        self.regions.unlink(&mut self.trackers, head);
        for (id, at, len) in parts(range) {
            let stays = !whole && id == range.first.hugepage() && at > 0;
            self.regions.change(&mut self.trackers[id.0 as usize], |t| match stays {
                true => t.truncate(at, len),
                false => t.vacate(at, len),
            });
        }
        self.regions.link(&mut self.trackers, head);
        if self.trackers[head.0 as usize].run == REGION_PAGES {
            self.end_region(head);
        }
        self.note_demand();
        self.shrink_to_limit();
    }

    /// Whether the pages behind a region's span are free, so that it can become longer by them.
    pub(crate) fn is_free_in_region(&self, range: PageRange) -> bool {
        let region = head_of(PageId(range.first.0 - 1).hugepage());
        let room = (region.0 + REGION) * PAGES_PER_HUGEPAGE - range.first.0;
        range.len.0 <= room && parts(range).all(|(id, at, len)| !self.trackers[id.0 as usize].used().any(at, len))
    }

    /// Gives the hugepages of an empty region back.
    fn end_region(&mut self, head: HugePageId) {
        self.regions.unlink(&mut self.trackers, head);
        for i in head.0..head.0 + REGION {
            self.regions.held.sub(Held::of(&self.trackers[i as usize]));
            let backed = self.trackers[i as usize].backed_pages() > 0;
            // One by one: neighbours of the same kind are joined.
            if backed {
                self.cached.insert(&mut self.trackers, HugePageId(i), HugePages(1));
            } else {
                self.unbacked.insert(&mut self.trackers, HugePageId(i), HugePages(1));
            }
        }
    }

    /// Takes the memory of up to `want` hugepages without a used page away; returns how many hugepages and pages lost theirs.
    pub(crate) fn shrink_regions(&mut self, want: u32) -> (u32, u64) {
        let (mut done, mut pages) = (0, 0);
        while done < want && self.regions.held.idle_backed > 0 {
            let idle = |i: u32| {
                let t = &self.trackers[i as usize];
                t.used_pages() == 0 && t.backed_pages() > 0 && !t.collapsing
            };
            let found = self.regions.walk(&self.trackers).find_map(|head| {
                let end = head.0 + REGION;
                let first = (head.0..end).find(|i| idle(*i))?;
                Some((HugePageId(first), (first..end).take((want - done) as usize).take_while(|i| idle(*i)).count()))
            });
            let Some((first, len)) = found else { break };
            let len = HugePages(len as u32);
            if self.floor.unback(first.run(len)).is_err() {
                break;
            }
            for i in first.0..first.0 + len.0 {
                let t = &mut self.trackers[i as usize];
                pages += u64::from(t.backed_pages());
                self.regions.change(t, Tracker::unbacked);
            }
            done += len.0;
        }
        self.released_total += pages;
        (done, pages)
    }
}
