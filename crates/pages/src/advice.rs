//! Spans whose owner knows better how they should be backed.
//!
//! **What.** Memory that is hardly ever used is better off on small pages, which the system can take one by one, and memory in
//! constant use on hugepages, in a small heap too. Whoever has whole hugepages may say so while they have them.
//!
//! **Failure.** Advice that the system does not take changes nothing.

use crate::fit::Fit;
use crate::heap::PageHeap;
use craton_base::{Advice, Clock, Floor, FrameSource, HugePageId, PAGES_PER_HUGEPAGE, PageRange};

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// Says how the hugepages that a span covers whole should be backed, until [`PageHeap::unadvise_span`], which comes before
    /// the span is given back. The span is out.
    pub fn advise_span(&mut self, span: PageRange, advice: Advice) {
        for id in whole_hugepages(span) {
            if self.usual_advice(id) != advice {
                self.floor.advise(id.range(), advice);
            }
            if advice == Advice::Small {
                self.trackers[id.0 as usize].intact = false;
            }
        }
    }

    /// Takes back what [`PageHeap::advise_span`] said, with the same arguments.
    pub fn unadvise_span(&mut self, span: PageRange, advice: Advice) {
        for id in whole_hugepages(span) {
            let usual = self.usual_advice(id);
            if usual != advice {
                self.floor.advise(id.range(), usual);
            }
        }
    }

    /// How a hugepage is to be backed for which nobody asked anything else.
    fn usual_advice(&self, id: HugePageId) -> Advice {
        if id >= self.backing().from { Advice::Huge } else { Advice::Small }
    }
}

/// The hugepages of which no page lies outside of a span.
fn whole_hugepages(span: PageRange) -> impl Iterator<Item = HugePageId> {
    (span.first.0.div_ceil(PAGES_PER_HUGEPAGE)..span.end().0 / PAGES_PER_HUGEPAGE).map(HugePageId)
}
