//! A floor or span source that counts what is asked of it.

use craton_base::{
    Advice, Ask, CollapseError, Density, Floor, HugePages, NoMemory, PageRange, Pages, Residency, Span, SpanError,
    SpanSource,
};

/// Calls by method, refused ones among them, and what the granted ones moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// `reserve`
    pub reserve: u64,
    /// `back`
    pub back: u64,
    /// `unback`
    pub unback: u64,
    /// `collapse`
    pub collapse: u64,
    /// `advise`
    pub advise: u64,
    /// `alloc`
    pub alloc: u64,
    /// `free`
    pub free: u64,
    /// `resize`
    pub resize: u64,
    /// Calls of any method that were refused.
    pub refused: u64,
    /// Pages in ranges whose `back`, `unback` or `collapse` was granted.
    pub pages_moved: u64,
    /// Pages in spans that are out now.
    pub pages_out: u64,
}

/// Passes everything on and counts it.
#[derive(Clone, Debug)]
pub struct Counted<T> {
    inner: T,
    counts: Counts,
}

impl<T> Counted<T> {
    /// Wraps `inner`, from which nothing may be out yet.
    pub fn new(inner: T) -> Self {
        Self { inner, counts: Counts::default() }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The one below.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    /// The one below, past the counters.
    pub fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    fn note<R, E>(&mut self, result: Result<R, E>) -> Result<R, E> {
        self.counts.refused += u64::from(result.is_err());
        result
    }

    fn moved<E>(&mut self, range: PageRange, result: Result<(), E>) -> Result<(), E> {
        self.counts.pages_moved += if result.is_ok() { u64::from(range.len.0) } else { 0 };
        self.note(result)
    }
}

impl<F: Floor> Floor for Counted<F> {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        self.counts.reserve += 1;
        let result = self.inner.reserve(total);
        self.note(result)
    }
    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.counts.back += 1;
        let result = self.inner.back(range);
        self.moved(range, result)
    }
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.counts.unback += 1;
        let result = self.inner.unback(range);
        self.moved(range, result)
    }
    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        self.counts.collapse += 1;
        let result = self.inner.collapse(range);
        self.moved(range, result)
    }
    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        self.counts.advise += 1;
        self.inner.advise(range, advice)
    }
    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        self.inner.residency(range, ask)
    }
}

impl<S: SpanSource> SpanSource for Counted<S> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        self.counts.alloc += 1;
        let result = self.inner.alloc(pages, align, density);
        self.counts.pages_out += result.map_or(0, |span| u64::from(span.range.len.0));
        self.note(result)
    }
    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.counts.free += 1;
        let result = self.inner.free(span, density);
        if result.is_ok() {
            self.counts.pages_out -= u64::from(span.len.0);
        }
        self.note(result)
    }
    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError> {
        self.counts.resize += 1;
        let result = self.inner.resize(span, pages);
        if result.is_ok() {
            self.counts.pages_out = self.counts.pages_out - u64::from(span.len.0) + u64::from(pages.0);
        }
        self.note(result)
    }
}

#[cfg(test)]
mod tests;
