//! Where slabs have their spans from.
//!
//! **What.** The cache of short spans, slabs that other classes hardly use, and the page heap, in this order; or nothing.

use super::Heap;
use crate::hooks::Hooks;
use crate::size_class;
use crate::trace;
use craton_base::{Clock, Density, Floor, PageRange, Pages, Span, SpanError, SpanSource};
use craton_os::process;

/// A source for slabs that are to do with what they have.
pub(crate) struct NoSpans;

impl SpanSource for NoSpans {
    fn alloc(&mut self, _: Pages, _: Pages, _: Density) -> Result<Span, SpanError> {
        Err(SpanError::NoMemory)
    }

    fn free(&mut self, _: PageRange, _: Density) -> Result<(), SpanError> {
        Err(SpanError::NoMemory)
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}

/// The page heap as a class's slabs see it: spans are marked in the page map while the class has them.
pub(crate) struct Marked<'a, F: Floor, C: Clock, H: Hooks> {
    pub(crate) heap: &'a Heap<F, C, H>,
    pub(crate) home: usize,
    pub(crate) class: usize,
}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Makes the spans of two slabs one.
    pub(crate) fn join(&self, first: PageRange, second: PageRange) {
        let joined = trace::join(&mut self.pages.lock(), first, second);
        self.expect_given(first, joined);
    }
}

impl<F: Floor, C: Clock, H: Hooks> Marked<'_, F, C, H> {
    fn mark(&self, range: PageRange, mark: u8) {
        // Of a single object only the first page may be freed.
        self.heap.set_marks(range, mark, !size_class::geometry(self.class).is_single());
    }
}

impl<F: Floor, C: Clock, H: Hooks> SpanSource for Marked<'_, F, C, H> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let span = match self.heap.spans.take(process::cpu(), pages, align, density) {
            Some(range) => Span { range, zeroed: false },
            None => {
                if let Some(range) = self.heap.second_hand(self.home, self.class) {
                    return Ok(Span { range, zeroed: false });
                }
                self.heap.take_span(pages, align, density)?
            }
        };
        self.heap.layout().records[span.range.first.0 as usize].set_owner(self.home);
        self.mark(span.range, self.class as u8);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.mark(span, 0);
        // A slab that was one of another class may lie on a hugepage of another density, which the page heap knows.
        if self.heap.spans.put(process::cpu(), span, density) {
            return Ok(());
        }
        let given = self.heap.with_pages(|p| trace::free(p, span, density));
        self.heap.expect_given(span, given);
        given
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}
