//! Checks the contract of a floor or span source at every call, on both sides.

use craton_base::{
    Advice, Ask, CollapseError, Density, Floor, HugePages, NoMemory, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages,
    Residency, Span, SpanError, SpanSource,
};
use std::collections::BTreeMap;

/// Assumes no concurrent touches and exact residency.
#[derive(Clone, Debug)]
pub struct Checked<T> {
    inner: T,
    granted: HugePages,
    /// Live, by first page: length and density.
    spans: BTreeMap<PageId, (Pages, Density)>,
    live: u64,
}

impl<T> Checked<T> {
    pub fn new(inner: T) -> Self {
        Self { inner, granted: HugePages(0), spans: BTreeMap::new(), live: 0 }
    }

    pub fn inner(&self) -> &T {
        &self.inner
    }

    pub fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    pub fn live(&self) -> Pages {
        Pages(self.live as u32)
    }

    /// In order of address.
    pub fn spans(&self) -> impl Iterator<Item = PageRange> + '_ {
        self.spans.iter().map(|(first, (len, _))| PageRange::new(*first, *len))
    }

    fn assert_granted(&self, call: &str, range: PageRange) {
        let end = u64::from(range.first.0) + u64::from(range.len.0);
        let granted = self.granted.0;
        assert!(
            end <= u64::from(granted) * u64::from(PAGES_PER_HUGEPAGE),
            "{call}: pages {}..{end} reach beyond the {granted} hugepages that reserve granted",
            range.first.0
        );
    }

    fn assert_out(&self, call: &str, span: PageRange) -> Density {
        match self.spans.get(&span.first) {
            Some((len, density)) if *len == span.len => *density,
            Some((len, _)) => panic!("{call}: {span:?} was given with {} pages", len.0),
            None => panic!("{call}: {span:?} is not out: no span that was given begins there"),
        }
    }

    fn assert_apart(&self, call: &str, range: PageRange, but: Option<PageId>) {
        let before = self.spans.range(..range.end()).rev().find(|(first, _)| Some(**first) != but);
        if let Some((first, (len, _))) = before {
            let other = PageRange::new(*first, *len);
            assert!(other.end() <= range.first, "{call}: {range:?} overlaps {other:?}, which is out");
        }
    }
}

impl<F: Floor> Checked<F> {
    /// `want` bytes are left, or any.
    fn ranged<E>(
        &mut self,
        call: &str,
        range: PageRange,
        want: Option<usize>,
        run: impl FnOnce(&mut F) -> Result<(), E>,
    ) -> Result<(), E> {
        self.assert_granted(call, range);
        let before = self.inner.residency(range, Ask::Both);
        let result = run(&mut self.inner);
        let after = self.inner.residency(range, Ask::Both);
        match result {
            Err(_) => assert_eq!(after, before, "{call} of {range:?} was refused, and yet changed something"),
            Ok(()) => {
                assert_eq!(after.resident_bytes, want.unwrap_or(after.resident_bytes), "{call} of {range:?}: resident")
            }
        }
        result
    }
}

impl<F: Floor> Floor for Checked<F> {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        let old = self.granted;
        assert!(total >= old, "reserve: the grant of {} hugepages cannot shrink to {}", old.0, total.0);
        self.inner.reserve(total)?;
        self.granted = total;
        let new = craton_base::HugePageId(old.0).run(HugePages(total.0 - old.0));
        let resident = self.inner.residency(new, Ask::Resident).resident_bytes;
        assert_eq!(resident, 0, "reserve({}): the new part has memory already", total.0);
        Ok(())
    }

    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.ranged("back", range, Some(range.len.bytes().0), |f| f.back(range))
    }

    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.ranged("unback", range, Some(0), |f| f.unback(range))
    }

    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        let whole = range.first.in_hugepage() == 0 && range.end().in_hugepage() == 0;
        assert!(whole, "collapse: {range:?} is not whole hugepages");
        self.ranged("collapse", range, Some(range.len.bytes().0), |f| f.collapse(range))
    }

    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        self.assert_granted("advise", range);
        self.inner.advise(range, advice)
    }

    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        self.assert_granted("residency", range);
        self.inner.residency(range, ask)
    }
}

impl<S: SpanSource> SpanSource for Checked<S> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        assert!(pages.0 > 0, "alloc: a span has at least one page");
        assert!(align.0.is_power_of_two(), "alloc: the alignment of {} pages is not a power of two", align.0);
        let span = self.inner.alloc(pages, align, density)?;
        let range = span.range;
        assert_eq!(range.len, pages, "alloc: {range:?} is not of the length asked for");
        assert!(range.first.0 % align.0 == 0, "alloc: {range:?} does not begin at a multiple of {} pages", align.0);
        self.assert_apart("alloc", range, None);
        self.spans.insert(range.first, (range.len, density));
        self.live += u64::from(pages.0);
        Ok(span)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        let given = self.assert_out("free", span);
        assert_eq!(density, given, "free: {span:?} was given with another density");
        self.spans.remove(&span.first);
        self.live -= u64::from(span.len.0);
        self.inner.free(span, density)
    }

    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError> {
        assert!(pages.0 > 0, "resize: a span has at least one page");
        let density = self.assert_out("resize", span);
        assert_eq!(density, Density::Sparse, "resize: {span:?} is not a sparse span");
        let zeroed = self.inner.resize(span, pages)?;
        self.assert_apart("resize", PageRange::new(span.first, pages), Some(span.first));
        self.spans.insert(span.first, (pages, density));
        self.live = self.live - u64::from(span.len.0) + u64::from(pages.0);
        Ok(zeroed)
    }
}

#[cfg(test)]
mod tests;
