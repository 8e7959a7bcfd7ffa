//! Spans for slabs and large objects: of the page heap, and of what lies in front of it.
//!
//! **What.** Complete slabs that classes keep and long spans that were freed are out to the page heap, so that they come and go without
//! its lock. Before it takes memory that the heap does not have yet, they serve, or go back to it.

use super::Heap;
use crate::hooks::Hooks;
use crate::page_heap::PageHeap;
use crate::trace;
use craton_base::{Clock, Density, Floor, PageRange, Pages, Span, SpanError};
use craton_os::process;

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Takes a span from the page heap, if need be with what is kept in front of it.
    pub(super) fn take_span(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let keeps = self.complete_pages() > Pages(0) || self.large.pages() > Pages(0);
        let span = self.with_pages(|p| {
            let grows = keeps && !p.has_memory_for(pages, align, density);
            (!grows).then(|| self.alloc_span(p, pages, align, density))
        });
        let span = span.unwrap_or_else(|| self.take_kept_span(pages, align, density));
        if span == Err(SpanError::NoMemory) && self.give_all_kept() {
            return self.alloc_drained(pages, align, density);
        }
        span
    }

    /// Takes a span from the page heap when it has back what the caches in front of it hold.
    fn alloc_drained(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        self.with_pages(|p| {
            self.drain(p);
            self.alloc_span(p, pages, align, density)
        })
    }

    /// Takes a span that the page heap has no room for, of what lies in front of it: the shorter part of a longer one, or, when all of that
    /// has gone back, of what became of it.
    #[cold]
    fn take_kept_span(&self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        if density == Density::Sparse
            && let Some(longer) = self.large.take_longer(process::cpu(), pages, align)
        {
            let shortened = self.with_pages(|p| trace::resize(p, longer, pages));
            self.expect_given(longer, shortened.map(|_| ()));
            return Ok(Span { range: PageRange::new(longer.first, pages), zeroed: false });
        }
        self.give_complete();
        self.alloc_drained(pages, align, density)
    }

    /// Gives back what lies between the program and the page heap and could serve a request that the page heap refused; `false` when there
    /// is nothing of that kind.
    pub(crate) fn give_all_kept(&self) -> bool {
        let complete = self.complete_pages();
        if complete > Pages(0) {
            self.give_complete();
        }
        (self.drop_kept() > 0) | (self.pages_in_front() > Pages(0)) | (complete > Pages(0))
    }

    /// Gives the spans in front of the page heap back to it.
    pub(super) fn drain(&self, pages: &mut PageHeap<F, C>) {
        self.spans.drain(|span, density| {
            let given = trace::free(pages, span, density);
            debug_assert_eq!(given, Ok(()), "a cached span is out");
        });
        self.large.drain(|span| {
            let given = trace::free(pages, span, Density::Sparse);
            debug_assert_eq!(given, Ok(()), "a cached span is out");
        });
    }

    /// Pages that the caches in front of the page heap hold.
    pub(super) fn pages_in_front(&self) -> Pages {
        Pages(self.spans.pages().0 + self.large.pages().0)
    }
}
