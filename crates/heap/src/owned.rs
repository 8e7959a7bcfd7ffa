//! Spans, marks and records of private heaps and object caches, for the layer above.
//!
//! **Threads.** The caller holds the private heap's lock, before the page heap's.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::size_class::OWNED;
use crate::spans::Kept;
use craton_base::{Advice, Clock, Density, PageId, PageRange, Pages, Platform, Span, SpanError};
use craton_pages::PageHeapExt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owned {
    pub heap: u16,
    /// Or [`LARGE`](crate::size_class::LARGE).
    pub class: usize,
    /// The page of its pointer.
    pub first: PageId,
    /// Usable bytes.
    pub bytes: usize,
}

/// In the record of an object cache's page.
pub const CACHE_CLASS: u8 = u8::MAX;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn take_own(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        Kept { heap: self }.alloc(pages, align, density)
    }

    pub fn give_own(&self, range: PageRange) {
        let given = self.lock_pages().free(range, Density::Sparse);
        self.expect_given(range, given);
    }

    /// For a live span.
    pub fn advise_own(&self, range: PageRange, advice: Advice) {
        self.lock_pages().advise_span(range, advice);
    }

    pub fn unadvise_own(&self, range: PageRange, advice: Advice) {
        self.lock_pages().unadvise_span(range, advice);
    }

    /// Only the first page unless `all`.
    pub fn mark_own(&self, range: PageRange, all: bool, heap: u16, class: u8) {
        let pages = if all { range.len.0 } else { 1 };
        (0..pages).for_each(|i| self.record(PageId(range.first.0 + i)).set_heap(heap, class));
        self.set_marks(range, OWNED, all);
    }

    pub fn unmark_own(&self, range: PageRange, all: bool) {
        self.set_marks(range, 0, all);
    }
}
