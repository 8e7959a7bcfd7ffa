//! The pages of one heap of its own: chunks for its slabs, and spans for its large objects.
//!
//! **What.** Counts what the heap has against its limit, and gives all of it back at once when the heap is destroyed: a step for each
//! chunk and each large object, none for an object.
//!
//! **Units.** The limit counts the pages of slabs and large objects, not the free ones of chunks.
//!
//! **State.** Large objects hang on a list through their records.
//!
//! **Failure.** What the limit or the page heap refuses changes nothing.

use super::chunks::Chunks;
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::size_class::{self, LARGE};
use craton_base::{
    Advice, Clock, Density, Floor, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages, Span, SpanError, SpanSource,
};

/// Chunks are aligned to the longest slab, so that every slab's own alignment can be had in them.
const ALIGN: Pages = Pages(32);
/// A heap's first chunk, 256 KiB; the following ones double, up to a hugepage.
const FIRST_CHUNK: Pages = Pages(32);

/// Where a heap's pages are, and on what memory. All of zero is [`Place::Shared`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Place {
    /// On hugepages with other heaps' pages.
    Shared,
    /// On hugepages of its own.
    Apart,
    /// Likewise, which the system is asked to back by hugepages.
    Huge,
    /// Likewise, which the system is asked to back by small pages.
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

/// The pages of a heap.
pub(crate) struct OwnPages {
    chunks: Chunks,
    /// What the next chunk will have; 0 stands for the first.
    next_chunk: Pages,
    pub(crate) place: Place,
    /// The heap's number.
    pub(crate) id: u16,
    /// The first large object's page, plus 1.
    larges: u32,
    pub(crate) large_objects: u32,
    pub(crate) large_pages: Pages,
    /// Pages of slabs and large objects.
    pub(crate) used: Pages,
    /// Pages taken from the page heap.
    pub(crate) held: Pages,
    /// What `used` may be; 0 for no limit.
    pub(crate) limit: Pages,
}

impl OwnPages {
    /// Begins anew as pages of heap `id`.
    pub(crate) fn begin(&mut self, id: u16, place: Place, limit: Pages) {
        debug_assert_eq!(self.held, Pages(0));
        (self.id, self.place, self.limit, self.next_chunk) = (id, place, limit, Pages(0));
    }

    /// Whether so many pages more are allowed.
    fn allows(&self, more: Pages) -> bool {
        self.limit == Pages(0) || u64::from(self.used.0) + u64::from(more.0) <= u64::from(self.limit.0)
    }

    fn add_chunk<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        density: Density,
    ) -> Result<(), SpanError> {
        self.chunks.prepare()?;
        let (len, align) = match self.place {
            Place::Shared => (Pages(self.next_chunk.0.max(FIRST_CHUNK.0)), ALIGN),
            _ => (Pages(PAGES_PER_HUGEPAGE), Pages(PAGES_PER_HUGEPAGE)),
        };
        let span = under.take_own(len, align, density)?;
        if let Some(advice) = self.place.advice() {
            under.advise_own(span.range, advice);
        }
        self.chunks.add(span.range);
        self.held.0 += len.0;
        under.heaps.note_spare(len, Pages(0));
        self.next_chunk = Pages((2 * len.0).min(PAGES_PER_HUGEPAGE));
        Ok(())
    }

    fn give_chunk<F: Floor, C: Clock, H: Hooks>(&mut self, under: &Heap<F, C, H>, range: PageRange) {
        if let Some(advice) = self.place.advice() {
            under.unadvise_own(range, advice);
        }
        self.held.0 -= range.len.0;
        under.give_own(range);
    }

    /// Takes the span of a large object, which gets its mark.
    pub(crate) fn take_large<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        pages: Pages,
        align: Pages,
    ) -> Result<Span, SpanError> {
        // Nobody else's objects come to lie on hugepages that a span covers whole.
        let (pages, align) = match self.place {
            Place::Shared => (pages, align),
            _ => (whole_hugepages(pages).ok_or(SpanError::NoMemory)?, Pages(align.0.max(PAGES_PER_HUGEPAGE))),
        };
        if !self.allows(pages) {
            return Err(SpanError::NoMemory);
        }
        let span = under.take_own(pages, align, Density::Sparse)?;
        if let Some(advice) = self.place.advice() {
            under.advise_own(span.range, advice);
        }
        let (first, record) = (span.range.first.0, under.record(span.range.first));
        record.set_pages(pages);
        record.set_neighbours(self.larges, 0);
        if let Some(next) = self.larges.checked_sub(1) {
            let next = under.record(PageId(next));
            next.set_neighbours(next.neighbours().0, first + 1);
        }
        self.larges = first + 1;
        under.mark_own(span.range, false, self.id, LARGE);
        self.large_objects += 1;
        self.large_pages.0 += pages.0;
        (self.used.0, self.held.0) = (self.used.0 + pages.0, self.held.0 + pages.0);
        Ok(span)
    }

    /// Gives a large object's span back.
    pub(crate) fn give_large<F: Floor, C: Clock, H: Hooks>(&mut self, under: &Heap<F, C, H>, first: PageId) {
        let record = under.record(first);
        let (range, (next, prev)) = (PageRange::new(first, record.pages()), record.neighbours());
        match prev.checked_sub(1) {
            Some(prev) => {
                let prev = under.record(PageId(prev));
                prev.set_neighbours(next, prev.neighbours().1);
            }
            None => self.larges = next,
        }
        if let Some(next) = next.checked_sub(1) {
            let next = under.record(PageId(next));
            next.set_neighbours(next.neighbours().0, prev);
        }
        record.set_gone(range.len);
        under.unmark_own(range, false);
        if let Some(advice) = self.place.advice() {
            under.unadvise_own(range, advice);
        }
        self.large_objects -= 1;
        self.large_pages.0 -= range.len.0;
        (self.used.0, self.held.0) = (self.used.0 - range.len.0, self.held.0 - range.len.0);
        under.give_own(range);
    }

    /// Makes a large object longer or shorter where it stands.
    pub(crate) fn resize_large<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        first: PageId,
        pages: Pages,
    ) -> Result<(), SpanError> {
        let old = under.record(first).pages();
        // Whole hugepages and what is advised for them are for one length.
        if self.place != Place::Shared || !self.allows(Pages(pages.0.saturating_sub(old.0))) {
            return Err(SpanError::NoMemory);
        }
        under.resize_large(first, pages)?;
        self.large_pages.0 = self.large_pages.0 - old.0 + pages.0;
        (self.used.0, self.held.0) = (self.used.0 - old.0 + pages.0, self.held.0 - old.0 + pages.0);
        Ok(())
    }

    /// Gives the chunk of a heap without objects back, which stays for the next one otherwise.
    pub(crate) fn trim<F: Floor, C: Clock, H: Hooks>(&mut self, under: &Heap<F, C, H>) {
        if let Some(chunk) = self.chunks.take_empty() {
            under.heaps.note_spare(Pages(0), chunk.len);
            self.give_chunk(under, chunk);
        }
    }

    /// Gives everything back, objects and all.
    pub(crate) fn give_all<F: Floor, C: Clock, H: Hooks>(&mut self, under: &Heap<F, C, H>) {
        while let Some(first) = self.larges.checked_sub(1) {
            self.give_large(under, PageId(first));
        }
        under.heaps.note_spare(Pages(0), Pages(self.held.0 - self.used.0));
        for i in 0..self.chunks.all().len() {
            let range = self.chunks.all()[i].range;
            // The slabs' records stay as they are: without a mark nobody asks them.
            under.unmark_own(range, true);
            self.give_chunk(under, range);
        }
        self.chunks.clear();
        self.used = Pages(0);
    }
}

/// The least number of pages that are whole hugepages and not fewer than these.
pub(crate) fn whole_hugepages(pages: Pages) -> Option<Pages> {
    pages.0.checked_next_multiple_of(PAGES_PER_HUGEPAGE).map(Pages)
}

/// The pages as the slabs of one class see them.
pub(crate) struct ClassPages<'a, F: Floor, C: Clock, H: Hooks> {
    pub(crate) pages: &'a mut OwnPages,
    pub(crate) under: &'a Heap<F, C, H>,
    pub(crate) class: usize,
}

impl<F: Floor, C: Clock, H: Hooks> ClassPages<'_, F, C, H> {
    /// Of a single object only the first page may be freed.
    fn marks_all(&self) -> bool {
        !size_class::geometry(self.class).is_single()
    }
}

impl<F: Floor, C: Clock, H: Hooks> SpanSource for ClassPages<'_, F, C, H> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        if !self.pages.allows(pages) {
            return Err(SpanError::NoMemory);
        }
        let range = match self.pages.chunks.take(pages, align) {
            Some(range) => range,
            None => {
                self.pages.add_chunk(self.under, density)?;
                self.pages.chunks.take(pages, align).ok_or(SpanError::NoMemory)?
            }
        };
        self.pages.used.0 += pages.0;
        self.under.heaps.note_spare(Pages(0), pages);
        self.under.mark_own(range, self.marks_all(), self.pages.id, self.class as u8);
        Ok(Span { range, zeroed: false })
    }

    fn free(&mut self, span: PageRange, _: Density) -> Result<(), SpanError> {
        self.under.unmark_own(span, self.marks_all());
        self.pages.used.0 -= span.len.0;
        self.under.heaps.note_spare(span.len, Pages(0));
        if let Some(chunk) = self.pages.chunks.put(span) {
            self.under.heaps.note_spare(Pages(0), chunk.len);
            self.pages.give_chunk(self.under, chunk);
        }
        Ok(())
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}
