//! A span source with little policy. Pages skipped for alignment are lost.

use craton_base::{Density, PageId, PageRange, Pages, Span, SpanError, SpanSource};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct BumpSpans {
    total: u32,
    next: u32,
    free: BTreeMap<u32, Vec<u32>>,
    live: u32,
}

impl BumpSpans {
    pub const fn new(total: Pages) -> Self {
        Self { total: total.0, next: 0, free: BTreeMap::new(), live: 0 }
    }

    pub fn live(&self) -> Pages {
        Pages(self.live)
    }

    fn reuse(&mut self, pages: u32, align: u32) -> Option<u32> {
        let list = self.free.get_mut(&pages)?;
        let i = list.iter().rposition(|first| first % align == 0)?;
        Some(list.remove(i))
    }
}

impl SpanSource for BumpSpans {
    fn alloc(&mut self, pages: Pages, align: Pages, _density: Density) -> Result<Span, SpanError> {
        assert!(align.0.is_power_of_two(), "alloc: the alignment of {} pages is not a power of two", align.0);
        assert!(pages.0 > 0, "alloc: a span has at least one page");
        let (first, zeroed) = match self.reuse(pages.0, align.0) {
            Some(first) => (first, false),
            None => {
                let first = self.next.checked_next_multiple_of(align.0).ok_or(SpanError::NoMemory)?;
                let end = first.checked_add(pages.0).filter(|end| *end <= self.total).ok_or(SpanError::NoMemory)?;
                self.next = end;
                (first, true)
            }
        };
        self.live += pages.0;
        Ok(Span { range: PageRange::new(PageId(first), pages), zeroed })
    }

    fn free(&mut self, span: PageRange, _density: Density) -> Result<(), SpanError> {
        if span.end().0 > self.next {
            return Err(SpanError::NeverGiven(span.first));
        }
        self.live -= span.len.0;
        self.free.entry(span.len.0).or_default().push(span.first.0);
        Ok(())
    }

    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError> {
        assert!(pages.0 > 0, "resize: a span has at least one page");
        let (old, end) = (span.len.0, span.end().0);
        if pages.0 <= old {
            let rest = old - pages.0;
            if rest > 0 {
                self.free.entry(rest).or_default().push(end - rest);
            }
            self.live -= rest;
            return Ok(true);
        }
        let more = pages.0 - old;
        if end != self.next || more > self.total - end {
            return Err(SpanError::NoMemory);
        }
        self.next += more;
        self.live += more;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
