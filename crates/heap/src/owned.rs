//! Spans, marks and records of private heaps and object caches, for the layer above.
//!
//! **What.** The page map has one mark for all of them; a page's record names the heap and class.
//!
//! **Threads.** Each call holds the private heap's lock; the page heap's comes after it.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::size_class::OWNED;
use crate::spans::Kept;
use craton_base::{Advice, Clock, Density, PageId, PageRange, Pages, Platform, Span, SpanError};
use craton_pages::PageHeapExt;

/// An object of a private heap or an object cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owned {
    pub heap: u16,
    /// A size class, or [`LARGE`](crate::size_class::LARGE).
    pub class: usize,
    /// The page of its pointer.
    pub first: PageId,
    /// Usable bytes.
    pub bytes: usize,
}

/// The class in the record of an object cache's page.
pub const CACHE_CLASS: u8 = u8::MAX;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn take_own(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        Kept { heap: self }.alloc(pages, align, density)
    }

    pub fn give_own(&self, range: PageRange) {
        let given = self.lock_pages().free(range, Density::Sparse);
        self.expect_given(range, given);
    }

    /// Requests hugepages or small pages for a live span.
    pub fn advise_own(&self, range: PageRange, advice: Advice) {
        self.lock_pages().advise_span(range, advice);
    }

    pub fn unadvise_own(&self, range: PageRange, advice: Advice) {
        self.lock_pages().unadvise_span(range, advice);
    }

    /// Marks a span's first page, and the others too if `all`, as a private heap's.
    pub fn mark_own(&self, range: PageRange, all: bool, heap: u16, class: u8) {
        let pages = if all { range.len.0 } else { 1 };
        (0..pages).for_each(|i| self.record(PageId(range.first.0 + i)).set_heap(heap, class));
        self.set_marks(range, OWNED, all);
    }

    pub fn unmark_own(&self, range: PageRange, all: bool) {
        self.set_marks(range, 0, all);
    }
}
