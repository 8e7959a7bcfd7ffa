//! Page frames in place of the filler's choice: the second page heap.
//!
//! **What.** A [`FrameSource`] says where spans of up to half a hugepage go. Whole hugepages, their memory, and what goes back to the
//! system are [`PageHeap`](crate::PageHeap)'s as ever: a hugepage that comes into the filler comes online, one that has no used page any
//! more goes offline, and so is free for long spans, for the cache and for the system.
//!
//! **From.** LLFree (USENIX ATC 2023) packs frames of 2^k; its search prefers trees in use to free ones, and so frees hugepages by
//! itself (§5.5). A span of another length goes where the filler finds a gap for it; where there is none, it is the front of a block, of
//! which the rest goes back at once.
//!
//! **Invariants.** P11: a hugepage in the filler is online, and those of its frames are taken that its tracker says are used; all others
//! are offline.
//!
//! **Failure.** A refusal of what P11 says must be possible is a defect; the frames then stay taken, and serve nobody.

use crate::fit::Found;
use crate::tracker::Tracker;
use core::convert::Infallible;
use craton_base::{Density, FrameSource, HugePageId, PAGES_PER_HUGEPAGE, PageBits, PageId};

/// Orders of spans that frames place: up to half a hugepage.
const MAX_PAGES: u32 = PAGES_PER_HUGEPAGE / 2;

/// No frames: the filler's lists say where spans go.
#[derive(Clone, Copy, Debug)]
pub enum NoFrames {}

impl FrameSource for NoFrames {
    type Error = Infallible;

    const HUGE_ORDER: u32 = PAGES_PER_HUGEPAGE.trailing_zeros();

    fn get(&self, _: u32, _: Density) -> Result<usize, Infallible> {
        match *self {}
    }
    fn get_at(&self, _: usize, _: usize) -> Result<(), Infallible> {
        match *self {}
    }
    fn put(&self, _: usize, _: usize) -> Result<(), Infallible> {
        match *self {}
    }
    fn online(&self, _: usize, _: usize) -> Result<(), Infallible> {
        match *self {}
    }
    fn offline(&self, _: usize, _: usize) -> Result<(), Infallible> {
        match *self {}
    }
    fn reclaim(&self, _: usize) -> Option<usize> {
        match *self {}
    }
}

/// Frames that are pages.
pub(crate) struct Frames<S> {
    source: S,
    /// No run of free pages is longer: a source that has no block looks everywhere before it says so.
    longest: u32,
}

impl<S: FrameSource> Frames<S> {
    const ARE_PAGES: () = assert!(1 << S::HUGE_ORDER == PAGES_PER_HUGEPAGE, "a huge frame is a hugepage");

    pub(crate) fn new(source: S) -> Self {
        let () = Self::ARE_PAGES;
        Self { source, longest: 0 }
    }

    /// Takes the pages of a span, at a multiple of `align`.
    pub(crate) fn take(&mut self, pages: u32, align: u32, density: Density) -> Found {
        let block = pages.max(align).next_power_of_two();
        // No huge frame that is online is wholly free, but for one that is being collapsed.
        if block > self.longest.min(MAX_PAGES) {
            return None;
        }
        let Ok(first) = self.source.get(block.trailing_zeros(), density) else {
            self.longest = block - 1;
            return None;
        };
        self.put(first + pages as usize, block - pages);
        let page = PageId(first as u32);
        Some((page.hugepage(), page.in_hugepage()))
    }

    /// Takes pages that are free.
    pub(crate) fn take_at(&self, id: HugePageId, at: u32, pages: u32) {
        let taken = self.source.get_at(first(id, at), pages as usize);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }

    fn put(&self, first: usize, pages: u32) {
        let given = self.source.put(first, pages as usize);
        debug_assert!(given.is_ok(), "{given:?}");
    }

    /// Brings a hugepage online, with its used pages taken.
    pub(crate) fn adopt(&mut self, id: HugePageId, t: &Tracker) {
        let online = self.source.online(first(id, 0), 1);
        debug_assert!(online.is_ok(), "{online:?}");
        self.follow(id, &PageBits::EMPTY, t);
        self.longest = self.longest.max(t.longest_free());
    }

    /// Takes a hugepage offline, whatever is used of it.
    pub(crate) fn expel(&self, id: HugePageId, t: &Tracker) {
        t.used().complement().clear_runs().for_each(|(at, pages)| self.put(first(id, at), pages));
        let offline = self.source.offline(first(id, 0), 1);
        debug_assert!(offline.is_ok(), "{offline:?}");
    }

    /// Does with frames what was done with a hugepage's pages, of which these were used before.
    pub(crate) fn follow(&mut self, id: HugePageId, old: &PageBits, t: &Tracker) {
        let freed = old.minus(t.used());
        if !freed.is_empty() {
            freed.complement().clear_runs().for_each(|(at, pages)| self.put(first(id, at), pages));
            self.longest = self.longest.max(t.longest_free());
        }
        for (at, pages) in t.used().minus(old).complement().clear_runs() {
            self.take_at(id, at, pages);
        }
    }
}

/// A page's number.
fn first(id: HugePageId, at: u32) -> usize {
    (id.first_page().0 + at) as usize
}
