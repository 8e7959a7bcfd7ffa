//! What each component of the page heap holds, for statistics.
//!
//! **What.** Sums that the components keep, and a walk over the hugepages' trackers, in steps that
//! release the page heap's lock.
//!
//! **Cost.** 2 to 10 ns a hugepage, only when asked.

use crate::heap::Heap;
use crate::hooks::Hooks;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, HugePages, Pages, Platform};
use craton_pages::{Census, Components, Figures, PageHeap};

/// Hugepages in a step: at most 10 us.
const STEP: HugePages = HugePages(1024);

/// Memory kept in front of the page heap, which counts it as in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InFront {
    pub complete_slabs: Pages,
    /// Pages of freed short spans.
    pub spans: Pages,
    /// Pages of freed large spans.
    pub large: Pages,
    /// Bytes of freed huge objects.
    pub mappings: usize,
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn components(&self) -> (Figures, Components) {
        let pages = self.pages.lock();
        (pages.figures(), pages.components())
    }

    /// Pages that the floor granted.
    pub fn granted(&self) -> Pages {
        Pages(self.granted_pages.load(Relaxed) as u32)
    }

    /// Walks the hugepages. Other threads' requests may come between its steps.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        while self.pages.lock().count_hugepages(&mut census, STEP) {}
        census
    }

    pub fn in_front(&self) -> InFront {
        InFront {
            complete_slabs: self.complete_pages(),
            spans: self.spans.pages(),
            large: self.large.pages(),
            mappings: self.huge.lock().kept.bytes(),
        }
    }
}
