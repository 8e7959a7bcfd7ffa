//! Spans resized in place: inside a hugepage up to its end, from its start over the free ones
//! behind.

use super::Temeraire;
use crate::backing::Use;
use crate::donation::{Large, occupy_whole};
use crate::fit::Fit;
use crate::placement::Placement;
use crate::tracker::Place;
use craton_base::{Clock, Floor, Geometry, HugePageId, HugePages, NoMemory, PageId, PageRange, Pages, SpanError};

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    /// Whether the added pages read as zeros.
    pub(super) fn lengthen(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        let (old, new) = (span.len.0, pages.0);
        let (id, at) = (G::hugepage(span.first), G::in_hugepage(span.first));
        match self.trackers[id.0 as usize].place {
            Place::Region => {
                let more = PageRange::new(span.end(), Pages(new - old));
                let free = self.regions.is_free(&self.trackers, more);
                free.then(|| self.occupy_in_region(more, false)).ok_or(NoMemory)
            }
            // A span that fills its hugepage leaves the filler.
            Place::Filler if at == 0 && new >= G::PAGES => self.extend_across(span, pages),
            Place::Filler => self.extend_within(id, at + old, new - old),
            _ => {
                let large = Large::of::<G>(span);
                if large.tail > 0 && large.whole.0 == new / G::PAGES {
                    self.extend_within(large.last(), large.tail, new - old)
                } else {
                    self.extend_across(span, pages)
                }
            }
        }
    }

    fn extend_within(&mut self, id: HugePageId, at: u32, pages: u32) -> Result<bool, NoMemory> {
        let t = &self.trackers[id.0 as usize];
        if t.place != Place::Filler || at + pages > G::PAGES || t.used().any(at, pages) {
            return Err(NoMemory);
        }
        Ok(self.change(id, |t| t.extend(at, pages)))
    }

    fn extend_across(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory> {
        let (old, new) = (Large::of::<G>(span), Large::of::<G>(PageRange::new(span.first, pages)));
        let (end, granted) = (old.end(), self.granted());
        let more = HugePages(new.end().0 - end.0);
        if old.tail > 0 {
            // The rest of the tail's hugepage must be free.
            let t = &self.trackers[old.last().0 as usize];
            if t.place != Place::Filler || t.used_pages() != old.tail || t.collapsing {
                return Err(NoMemory);
            }
        }
        if !self.cache.is_free(&mut self.trackers, &mut self.floor, end, more) {
            return Err(NoMemory);
        }
        let mut zeroed = true;
        if old.tail > 0 {
            let id = old.last();
            self.backing.unguard(&mut self.trackers, &mut self.floor, id, HugePages(1));
            self.expel(id);
            let t = &mut self.trackers[id.0 as usize];
            zeroed &= t.extend(old.tail, G::PAGES - old.tail);
            t.place = Place::Large;
            (t.donated, t.broken, t.dense) = (false, false, false);
        }
        self.cache.alloc_at(&mut self.trackers, end, more);
        self.back_new(granted, (end, more), Use { pages, fills_up: false, later: self.growth.is_paused() });
        self.record_demand();
        zeroed &= occupy_whole(&mut self.trackers, end, HugePages(new.last().0 - end.0), false);
        if new.tail > 0 {
            zeroed &= self.donate(new, false);
        }
        Ok(zeroed)
    }

    pub(super) fn shorten(&mut self, span: PageRange, pages: Pages) {
        let (id, at) = (G::hugepage(span.first), G::in_hugepage(span.first));
        match self.trackers[id.0 as usize].place {
            Place::Filler => self.trim_span(id, at + pages.0, span.len.0 - pages.0),
            Place::Region => {
                let end = PageRange::new(PageId(span.first.0 + pages.0), Pages(span.len.0 - pages.0));
                self.vacate_in_region(end, false);
            }
            _ => self.shorten_across(span, pages),
        }
    }

    fn trim_span(&mut self, id: HugePageId, at: u32, pages: u32) {
        self.change(id, |t| t.truncate(at, pages));
        if self.trackers[id.0 as usize].broken {
            self.unback(id, at, pages);
        }
    }

    /// Donates the new last hugepage's rest.
    fn shorten_across(&mut self, span: PageRange, pages: Pages) {
        let (old, new) = (Large::of::<G>(span), Large::of::<G>(PageRange::new(span.first, pages)));
        if old.whole == new.whole && new.tail > 0 {
            self.trim_span(old.last(), new.tail, old.tail - new.tail);
            return;
        }
        if old.tail > 0 {
            self.vacate(old.last(), 0, old.tail);
        }
        if new.tail > 0 {
            self.donate(new, new.whole.0 == 0);
        }
        if new.end() < old.last() {
            self.put(new.end(), HugePages(old.last().0 - new.end().0));
        }
    }

    pub(super) fn recut(&mut self, range: PageRange, each: Pages) -> Result<(), SpanError> {
        let wrong = SpanError::WrongLength(range.first);
        let (id, at, len) = (G::hugepage(range.first), G::in_hugepage(range.first), range.len.0);
        if range.end().0 > G::pages(self.granted()).0 || len > G::PAGES / 4 || at + len > G::PAGES {
            return Err(wrong);
        }
        let t = &self.trackers[id.0 as usize];
        let goes_on = if at + len < G::PAGES {
            t.used().contains(at + len) && !t.starts().contains(at + len)
        } else {
            id.0 + 1 < self.granted().0 && self.trackers[id.0 as usize + 1].continues()
        };
        if !t.used().all(at, len) || !t.starts().contains(at) || goes_on || !len.is_multiple_of(each.0) {
            return Err(wrong);
        }
        match t.place {
            Place::Filler => self.filler.update(&mut self.trackers, id, |t| t.recut(at, len, each.0)),
            // A region counts no spans.
            _ => self.trackers[id.0 as usize].recut(at, len, each.0),
        }
        Ok(())
    }

    /// Whether it was free.
    pub(super) fn alloc_at(&mut self, range: PageRange) -> bool {
        let (id, at, len) = (G::hugepage(range.first), G::in_hugepage(range.first), range.len.0);
        if range.end().0 > G::pages(self.granted()).0 || at + len > G::PAGES {
            return false;
        }
        let t = &self.trackers[id.0 as usize];
        if t.place != Place::Filler || t.used().any(at, len) || !t.has_memory(at, len) {
            return false;
        }
        self.change(id, |t| t.occupy(at, len));
        self.count(0, len);
        true
    }

    /// None if the first is shared, one is being collapsed, or hugepages are requested for a part.
    pub(super) fn movable(&self, span: PageRange) -> HugePages {
        if self.fault(span).is_some() {
            return HugePages(0);
        }
        let Large { first, whole, .. } = Large::of::<G>(span);
        let all = (first.0..first.0 + whole.0).all(|i| {
            let t = &self.trackers[i as usize];
            t.place == Place::Large && !t.collapsing && self.is_requested(HugePageId(i)) == self.is_requested(first)
        });
        if all { whole } else { HugePages(0) }
    }

    pub(super) fn free_moved(&mut self, span: PageRange) -> Result<(), SpanError> {
        if let Some(fault) = self.fault(span) {
            return Err(fault);
        }
        self.count(span.len.0, 0);
        let large = Large::of::<G>(span);
        if self.trackers[large.first.0 as usize].place != Place::Large || large.whole.0 == 0 {
            self.free_span(span);
            return Ok(());
        }
        if large.tail > 0 {
            self.vacate(large.last(), 0, large.tail);
        }
        for i in large.first.0..large.last().0 {
            self.trackers[i as usize].unbacked();
        }
        self.cache.put_unbacked(&mut self.trackers, large.first, large.whole);
        self.record_demand();
        Ok(())
    }
}
