//! A floor or span source that refuses what a plan names.

use crate::fault::{Call, FaultPlan};
use craton_base::{
    Advice, Ask, CollapseError, Density, Floor, HugePages, NoMemory, PageRange, Pages, Residency, Span, SpanError,
    SpanSource,
};

/// The layer below is not called.
#[derive(Clone, Debug)]
pub struct Faulty<T> {
    inner: T,
    plan: FaultPlan,
}

impl<T> Faulty<T> {
    pub fn new(inner: T, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }

    pub fn inner(&self) -> &T {
        &self.inner
    }

    pub fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    fn admit(&self, call: Call) -> Result<(), NoMemory> {
        if self.plan.refuses(call) { Err(NoMemory) } else { Ok(()) }
    }
}

impl<F: Floor> Floor for Faulty<F> {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        self.admit(Call::Reserve)?;
        self.inner.reserve(total)
    }
    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.admit(Call::Back)?;
        self.inner.back(range)
    }
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.admit(Call::Unback)?;
        self.inner.unback(range)
    }
    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        self.admit(Call::Collapse).map_err(|NoMemory| CollapseError::NoMemory)?;
        self.inner.collapse(range)
    }
    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        self.inner.advise(range, advice)
    }
    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        self.inner.residency(range, ask)
    }
}

impl<S: SpanSource> SpanSource for Faulty<S> {
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        self.admit(Call::Alloc)?;
        self.inner.alloc(pages, align, density)
    }
    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.inner.free(span, density)
    }
    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError> {
        self.admit(Call::Resize)?;
        self.inner.resize(span, pages)
    }
}

#[cfg(test)]
mod tests;
