//! Spans that become longer or shorter where they stand.
//!
//! **What.** `realloc` of a large object need not copy when the pages behind it are free. A span inside one hugepage may grow to
//! its end; one that begins a hugepage, over the free hugepages behind it.

use crate::fit::Fit;
use crate::heap::PageHeap;
use crate::tracker::Place;
use craton_base::{
    Clock, Floor, FrameSource, HugePageId, HugePages, NoMemory, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, SpanError,
};

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// Makes a span longer; says whether what was added reads as zeros.
    pub(crate) fn lengthen(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        let (old, new) = (span.len.0, pages.0);
        let (id, at) = (span.first.hugepage(), span.first.in_hugepage());
        if self.trackers[id.0 as usize].place == Place::Region {
            let more = PageRange::new(span.end(), Pages(new - old));
            return self.is_free_in_region(more).then(|| self.occupy_in_region(more, false)).ok_or(NoMemory);
        }
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

    /// Lengthens a span whose last hugepage is `id`, inside that hugepage.
    pub(crate) fn extend_within(&mut self, id: HugePageId, at: u32, pages: u32) -> Result<bool, NoMemory> {
        let t = &self.trackers[id.0 as usize];
        if t.place != Place::Filler || at + pages > PAGES_PER_HUGEPAGE || t.used().any(at, pages) {
            return Err(NoMemory);
        }
        Ok(self.filler.update(&mut self.trackers, id, |t| t.extend(at, pages)))
    }

    /// Lengthens a span that starts at a hugepage's start over the free hugepages behind it.
    pub(crate) fn extend_across(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        let first = span.first.hugepage();
        let (old_whole, old_tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
        let (new_whole, new_tail) = (pages.0 / PAGES_PER_HUGEPAGE, pages.0 % PAGES_PER_HUGEPAGE);
        let end = HugePageId(first.0 + span.len.hugepages_up().0);
        let more = HugePages(pages.hugepages_up().0 - span.len.hugepages_up().0);
        if old_tail > 0 {
            // The rest of the present tail must be free.
            let id = HugePageId(first.0 + old_whole);
            let t = &self.trackers[id.0 as usize];
            if t.place != Place::Filler || t.used_pages() != old_tail || t.collapsing {
                return Err(NoMemory);
            }
        }
        if !self.free_from(end, more) {
            return Err(NoMemory);
        }
        let mut zeroed = true;
        if old_tail > 0 {
            let id = HugePageId(first.0 + old_whole);
            self.unguard(id, HugePages(1));
            self.filler.expel(&mut self.trackers, id);
            let t = &mut self.trackers[id.0 as usize];
            zeroed &= t.extend(old_tail, PAGES_PER_HUGEPAGE - old_tail);
            t.place = Place::Large;
            (t.donated, t.broken, t.dense) = (false, false, false);
        }
        self.take_from(end, more, pages.hugepages_up());
        let whole_more = HugePages(first.0 + new_whole - end.0);
        zeroed &= self.occupy_whole(end, whole_more, false);
        if new_tail > 0 {
            zeroed &= self.donate(HugePageId(first.0 + new_whole), new_tail, false);
        }
        Ok(zeroed)
    }

    /// The whole hugepages at the front of a span whose memory can be moved elsewhere: none of a span that shares its first hugepage, of
    /// which some is being collapsed, or of which hugepages are asked for in part: to the system those are several mappings.
    pub fn movable(&self, span: PageRange) -> HugePages {
        if self.fault(span).is_some() {
            return HugePages(0);
        }
        let (first, whole) = (span.first.hugepage().0, span.len.0 / PAGES_PER_HUGEPAGE);
        let all = (first..first + whole).all(|i| {
            let t = &self.trackers[i as usize];
            t.place == Place::Large
                && !t.collapsing
                && self.asks_for(HugePageId(i)) == self.asks_for(span.first.hugepage())
        });
        HugePages(if all { whole } else { 0 })
    }

    /// Takes a span back whose whole hugepages have lost their memory: [`PageHeap::movable`] has named them, and they read as zeros.
    pub fn free_moved(&mut self, span: PageRange) -> Result<(), SpanError> {
        if let Some(fault) = self.fault(span) {
            return Err(fault);
        }
        self.count(span.len.0, 0);
        let first = span.first.hugepage();
        let (whole, tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
        if self.trackers[first.0 as usize].place != Place::Large || whole == 0 {
            self.free_span(span);
            return Ok(());
        }
        if tail > 0 {
            self.vacate(HugePageId(first.0 + whole), 0, tail);
        }
        (first.0..first.0 + whole).for_each(|i| self.trackers[i as usize].unbacked());
        self.unbacked.insert(&mut self.trackers, first, HugePages(whole));
        self.note_demand();
        Ok(())
    }

    /// Makes two spans, of which the second begins where the first ends, one; both lie in one hugepage, and neither is longer
    /// than a quarter of it.
    pub fn join(&mut self, first: PageRange, second: PageRange) -> Result<(), SpanError> {
        if let Some(fault) = self.fault(first).or_else(|| self.fault(second)) {
            return Err(fault);
        }
        let (id, at) = (second.first.hugepage(), second.first.in_hugepage());
        let is_small = first.len.0.max(second.len.0) <= PAGES_PER_HUGEPAGE / 4;
        if first.end() != second.first || first.first.hugepage() != id || !is_small {
            return Err(SpanError::WrongLength(first.first));
        }
        match self.trackers[id.0 as usize].place {
            Place::Filler => self.filler.update(&mut self.trackers, id, |t| t.join(at)),
            // A region counts no spans.
            _ => self.trackers[id.0 as usize].join(at),
        }
        Ok(())
    }

    /// Makes a span shorter.
    pub(crate) fn shorten(&mut self, span: PageRange, pages: Pages) {
        let (id, at) = (span.first.hugepage(), span.first.in_hugepage());
        match self.trackers[id.0 as usize].place {
            Place::Filler => self.trim_span(id, at + pages.0, span.len.0 - pages.0),
            Place::Region => {
                let end = PageRange::new(PageId(span.first.0 + pages.0), Pages(span.len.0 - pages.0));
                self.vacate_in_region(end, false);
            }
            _ => self.shorten_across(span, pages),
        }
    }

    /// Frees the end of a span on a hugepage of the filler.
    fn trim_span(&mut self, id: HugePageId, at: u32, pages: u32) {
        self.filler.update(&mut self.trackers, id, |t| t.truncate(at, pages));
        if self.trackers[id.0 as usize].broken {
            self.unback_free(id, at, pages);
        }
    }

    /// Shortens a span of several hugepages: whole hugepages at its end come free, the new last one's rest is donated.
    pub(crate) fn shorten_across(&mut self, span: PageRange, pages: Pages) {
        let first = span.first.hugepage();
        let (old_whole, old_tail) = (span.len.0 / PAGES_PER_HUGEPAGE, span.len.0 % PAGES_PER_HUGEPAGE);
        let (new_whole, new_tail) = (pages.0 / PAGES_PER_HUGEPAGE, pages.0 % PAGES_PER_HUGEPAGE);
        let last = HugePageId(first.0 + old_whole);
        if old_whole == new_whole && new_tail > 0 {
            self.trim_span(last, new_tail, old_tail - new_tail);
            return;
        }
        if old_tail > 0 {
            self.vacate(last, 0, old_tail);
        }
        let mut free_from = first.0 + new_whole;
        if new_tail > 0 {
            self.donate(HugePageId(free_from), new_tail, new_whole == 0);
            free_from += 1;
        }
        if free_from < last.0 {
            self.put(HugePageId(free_from), HugePages(last.0 - free_from));
        }
    }
}
