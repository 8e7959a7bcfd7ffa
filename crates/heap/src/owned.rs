//! Spans, marks and records for heaps of their own and for object caches, which the layer above keeps.
//!
//! **What.** The page map has one mark for all of them; a page's record names the heap and its class.
//!
//! **Threads.** The heap's own lock is held over each of these; the page heap's comes behind it.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::size_class::OWNED;
use crate::spans::Kept;
use craton_base::{Advice, Clock, Density, PageId, PageRange, Pages, Platform, Span, SpanError};
use craton_pages::PageHeapExt;

/// An object of a heap of its own, or of an object cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owned {
    /// The heap's number.
    pub heap: u16,
    /// Its size class, or [`LARGE`](crate::size_class::LARGE).
    pub class: usize,
    /// The page that its pointer points to.
    pub first: PageId,
    /// Bytes that may be used.
    pub bytes: usize,
}

/// Stands in a page's record for the class where the page is an object cache's.
pub const CACHE_CLASS: u8 = u8::MAX;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Takes a span.
    pub fn take_own(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        Kept { heap: self }.alloc(pages, align, density)
    }

    /// Gives a span back.
    pub fn give_own(&self, range: PageRange) {
        let given = self.lock_pages().free(range, Density::Sparse);
        self.expect_given(range, given);
    }

    /// Asks for hugepages or small pages under a span that is out.
    pub fn advise_own(&self, range: PageRange, advice: Advice) {
        self.lock_pages().advise_span(range, advice);
    }

    /// Takes that back.
    pub fn unadvise_own(&self, range: PageRange, advice: Advice) {
        self.lock_pages().unadvise_span(range, advice);
    }

    /// Marks a span's first page, and the others too if `all`, as one of heap `heap` and class `class`.
    pub fn mark_own(&self, range: PageRange, all: bool, heap: u16, class: u8) {
        let pages = if all { range.len.0 } else { 1 };
        (0..pages).for_each(|i| self.record(PageId(range.first.0 + i)).set_heap(heap, class));
        self.set_marks(range, OWNED, all);
    }

    /// Wipes a span's marks.
    pub fn unmark_own(&self, range: PageRange, all: bool) {
        self.set_marks(range, 0, all);
    }
}
