//! The pages of one heap: chunks for slabs, spans for large objects. The limit does not count free
//! pages of chunks.

use super::Over;
use super::chunks::Chunks;
use craton_base::{
    Advice, Clock, Density, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, Platform, Span, SpanError, SpanSource,
};
use craton_heap::hooks::Hooks;
use craton_heap::size_class::{self, LARGE};

/// Suits the longest slab.
const ALIGN: Pages = Pages(32);
/// 256 KiB; the following double, up to a hugepage.
const FIRST_CHUNK: Pages = Pages(32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Place {
    /// On hugepages with other heaps.
    Shared,
    /// On hugepages that no other heap uses.
    Apart,
    /// Apart, advised for hugepages.
    Huge,
    /// Apart, advised for small pages.
    Small,
}

impl Place {
    fn advice(self) -> Option<Advice> {
        match self {
            Self::Huge => Some(Advice::Huge),
            Self::Small => Some(Advice::Small),
            Self::Shared | Self::Apart => None,
        }
    }
}

pub(super) struct OwnPages {
    chunks: Chunks,
    next_chunk: Pages,
    pub(super) place: Place,
    pub(super) id: u16,
    /// The first one's page, plus 1.
    larges: u32,
    pub(super) large_objects: u32,
    pub(super) large_pages: Pages,
    pub(super) used: Pages,
    /// From the page heap.
    pub(super) held: Pages,
    /// Of `used`; 0: no limit.
    pub(super) limit: Pages,
}

impl OwnPages {
    pub(super) fn begin(&mut self, id: u16, place: Place, limit: Pages) {
        debug_assert_eq!(self.held, Pages(0));
        (self.id, self.place, self.limit, self.next_chunk) = (id, place, limit, Pages(0));
    }

    fn allows(&self, more: Pages) -> bool {
        self.limit == Pages(0) || u64::from(self.used.0) + u64::from(more.0) <= u64::from(self.limit.0)
    }
}

impl<F: Platform, C: Clock, H: Hooks> Over<'_, F, C, H> {
    fn alloc_pages(&self, own: &mut OwnPages, len: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let span = self.heap.take_own(len, align, density)?;
        if let Some(advice) = own.place.advice() {
            self.heap.advise_own(span.range, advice);
        }
        own.held.0 += len.0;
        Ok(span)
    }

    fn free_pages(&self, own: &mut OwnPages, range: PageRange) {
        if let Some(advice) = own.place.advice() {
            self.heap.unadvise_own(range, advice);
        }
        own.held.0 -= range.len.0;
        self.heap.give_own(range);
    }

    fn add_chunk(&self, own: &mut OwnPages, density: Density) -> Result<(), SpanError> {
        own.chunks.prepare()?;
        let (len, align) = match own.place {
            Place::Shared => (Pages(own.next_chunk.0.max(FIRST_CHUNK.0)), ALIGN),
            _ => (Pages(PAGES_PER_HUGEPAGE), Pages(PAGES_PER_HUGEPAGE)),
        };
        let span = self.alloc_pages(own, len, align, density)?;
        own.chunks.add(span.range);
        self.heaps.change_spare(len, Pages(0));
        own.next_chunk = Pages((2 * len.0).min(PAGES_PER_HUGEPAGE));
        Ok(())
    }

    /// Marks a large object.
    pub(super) fn alloc_span(&self, own: &mut OwnPages, pages: Pages, align: Pages) -> Result<Span, SpanError> {
        // Other heaps' objects share no hugepage that a span covers whole.
        let (pages, align) = match own.place {
            Place::Shared => (pages, align),
            _ => (whole_hugepages(pages).ok_or(SpanError::NoMemory)?, Pages(align.0.max(PAGES_PER_HUGEPAGE))),
        };
        if !own.allows(pages) {
            return Err(SpanError::NoMemory);
        }
        let span = self.alloc_pages(own, pages, align, Density::Sparse)?;
        let (first, record) = (span.range.first.0, self.heap.record(span.range.first));
        self.heap.length(span.range.first).set_pages(pages);
        record.set_neighbours(own.larges, 0);
        if let Some(next) = own.larges.checked_sub(1) {
            let next = self.heap.record(PageId(next));
            next.set_neighbours(next.neighbours().0, first + 1);
        }
        own.larges = first + 1;
        self.heap.mark_own(span.range, false, own.id, LARGE);
        own.large_objects += 1;
        own.large_pages.0 += pages.0;
        own.used.0 += pages.0;
        Ok(span)
    }

    pub(super) fn free_span(&self, own: &mut OwnPages, first: PageId) {
        let record = self.heap.record(first);
        let (range, (next, prev)) = (PageRange::new(first, self.heap.length(first).pages()), record.neighbours());
        match prev.checked_sub(1) {
            Some(prev) => {
                let prev = self.heap.record(PageId(prev));
                prev.set_neighbours(next, prev.neighbours().1);
            }
            None => own.larges = next,
        }
        if let Some(next) = next.checked_sub(1) {
            let next = self.heap.record(PageId(next));
            next.set_neighbours(next.neighbours().0, prev);
        }
        self.heap.length(first).set_gone(range.len);
        self.heap.unmark_own(range, false);
        own.large_objects -= 1;
        own.large_pages.0 -= range.len.0;
        own.used.0 -= range.len.0;
        self.free_pages(own, range);
    }

    pub(super) fn resize_span(&self, own: &mut OwnPages, first: PageId, pages: Pages) -> Result<(), SpanError> {
        let old = self.heap.length(first).pages();
        // Whole hugepages, and their advice, are for one length.
        if own.place != Place::Shared || !own.allows(Pages(pages.0.saturating_sub(old.0))) {
            return Err(SpanError::NoMemory);
        }
        self.heap.resize_large(first, pages)?;
        own.large_pages.0 = own.large_pages.0 - old.0 + pages.0;
        (own.used.0, own.held.0) = (own.used.0 - old.0 + pages.0, own.held.0 - old.0 + pages.0);
        Ok(())
    }

    pub(super) fn trim_pages(&self, own: &mut OwnPages) {
        if let Some(chunk) = own.chunks.take_empty() {
            self.heaps.change_spare(Pages(0), chunk.len);
            self.free_pages(own, chunk);
        }
    }

    pub(super) fn free_all_pages(&self, own: &mut OwnPages) {
        while let Some(first) = own.larges.checked_sub(1) {
            self.free_span(own, PageId(first));
        }
        self.heaps.change_spare(Pages(0), Pages(own.held.0 - own.used.0));
        for i in 0..own.chunks.all().len() {
            let range = own.chunks.all()[i].range;
            // Slabs' records stay: without a mark no path reads them.
            self.heap.unmark_own(range, true);
            self.free_pages(own, range);
        }
        own.chunks.clear();
        own.used = Pages(0);
    }
}

pub(super) fn whole_hugepages(pages: Pages) -> Option<Pages> {
    pages.0.checked_next_multiple_of(PAGES_PER_HUGEPAGE).map(Pages)
}

pub(super) struct ClassPages<'a, F: Platform, C: Clock, H: Hooks> {
    pub(super) pages: &'a mut OwnPages,
    pub(super) over: &'a Over<'a, F, C, H>,
    pub(super) class: usize,
}

impl<F: Platform, C: Clock, H: Hooks> ClassPages<'_, F, C, H> {
    /// Of a single object only the first page may be freed.
    fn marks_all(&self) -> bool {
        !size_class::geometry(self.class).is_single()
    }
}

impl<F: Platform, C: Clock, H: Hooks> SpanSource for ClassPages<'_, F, C, H> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        if !self.pages.allows(pages) {
            return Err(SpanError::NoMemory);
        }
        let range = match self.pages.chunks.alloc(pages, align) {
            Some(range) => range,
            None => {
                self.over.add_chunk(self.pages, density)?;
                self.pages.chunks.alloc(pages, align).ok_or(SpanError::NoMemory)?
            }
        };
        self.pages.used.0 += pages.0;
        self.over.heaps.change_spare(Pages(0), pages);
        self.over.heap.length(range.first).set_pages(range.len);
        self.over.heap.mark_own(range, self.marks_all(), self.pages.id, self.class as u8);
        Ok(Span { range, zeroed: false })
    }

    fn free(&mut self, span: PageRange, _: Density) -> Result<(), SpanError> {
        self.over.heap.length(span.first).set_pages(Pages(0));
        self.over.heap.unmark_own(span, self.marks_all());
        self.pages.used.0 -= span.len.0;
        self.over.heaps.change_spare(span.len, Pages(0));
        if let Some(chunk) = self.pages.chunks.free(span) {
            self.over.heaps.change_spare(Pages(0), chunk.len);
            self.over.free_pages(self.pages, chunk);
        }
        Ok(())
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}
