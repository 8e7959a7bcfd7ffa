//! What heaps of their own ask of the heap: spans, marks and records.
//!
//! **Threads.** A heap's own lock is held over each of these; the page heap's comes behind it.
//!
//! **Unsafe.** Hands slabs the address of the region.

use super::{Heap, mark_free};
use crate::hooks::Hooks;
use crate::size_class::OWNED;
use crate::trace;
use craton_base::{Advice, Clock, Density, Floor, PageId, PageRange, Pages, Span, SpanError, SpanSource};
use craton_slab::{Chain, SlabCache, SlabRecord};

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// The record of a granted page.
    pub(crate) fn record(&self, page: PageId) -> &SlabRecord {
        &self.layout().records[page.0 as usize]
    }

    /// Takes a span.
    pub(crate) fn take_own(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        self.take_span(pages, align, density)
    }

    /// Gives a span back.
    pub(crate) fn give_own(&self, range: PageRange) {
        let given = self.with_pages(|p| trace::free(p, range, Density::Sparse));
        self.expect_given(range, given);
    }

    /// Asks for hugepages or small pages under a span that is out.
    pub(crate) fn advise_own(&self, range: PageRange, advice: Advice) {
        self.with_pages(|p| p.advise_span(range, advice));
    }

    /// Takes that back.
    pub(crate) fn unadvise_own(&self, range: PageRange, advice: Advice) {
        self.with_pages(|p| p.unadvise_span(range, advice));
    }

    /// Marks a span's first page, and the others too if `all`, as one of heap `heap` and class `class`.
    pub(crate) fn mark_own(&self, range: PageRange, all: bool, heap: u16, class: u8) {
        let pages = if all { range.len.0 } else { 1 };
        (0..pages).for_each(|i| self.record(PageId(range.first.0 + i)).set_heap(heap, class));
        self.set_marks(range, OWNED, all);
    }

    /// Wipes a span's marks.
    pub(crate) fn unmark_own(&self, range: PageRange, all: bool) {
        self.set_marks(range, 0, all);
    }

    /// Up to `want` objects of slabs that the caller has to himself: a shard's, locked, or those of a heap of its own.
    pub(crate) fn take_from(&self, cache: &mut SlabCache, want: u32, source: &mut impl SpanSource) -> Chain {
        let layout = self.layout();
        // SAFETY: base, records and source are those of this heap, and the caller has the cache to himself.
        unsafe { cache.alloc(want, layout.base as *mut u8, &layout.records, source, |o| mark_free(layout.key, o)) }
    }

    /// Gives objects back to a heap's own slabs; the error is one that never was an object.
    ///
    /// # Safety
    /// The objects came from this cache, and the caller gives them up.
    pub(crate) unsafe fn give_back(
        &self,
        cache: &mut SlabCache,
        chain: Chain,
        source: &mut impl SpanSource,
    ) -> Result<(), *mut u8> {
        let layout = self.layout();
        // SAFETY: as in `take_from`, and by the contract.
        unsafe { cache.free(chain, layout.base as *mut u8, &layout.records, source) }
    }
}
