//! What each component of the page heap holds, for statistics.
//!
//! **Cost.** 2 to 10 ns a hugepage, only when asked.

use crate::heap::Heap;
use crate::hooks::Hooks;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, HugePages, Pages, Platform};
use craton_pages::{Census, Components, Figures, PageHeap};

/// At most 10 µs.
const STEP: HugePages = HugePages(1024);

/// The page heap counts it as in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InFront {
    pub complete_slabs: Pages,
    /// Freed short spans.
    pub spans: Pages,
    /// Freed large spans.
    pub large: Pages,
    /// Bytes of freed huge objects.
    pub mappings: usize,
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn components(&self) -> (Figures, Components) {
        let pages = self.pages.lock();
        (pages.figures(), pages.components())
    }

    pub fn granted(&self) -> Pages {
        Pages(self.granted_pages.load(Relaxed) as u32)
    }

    /// Releases the lock between steps.
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
