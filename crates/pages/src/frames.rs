//! Page frames in place of the filler's choice: the second page heap.
//!
//! **What.** A [`FrameSource`] says where spans of up to half a hugepage go. Whole hugepages, their memory, and what goes back to the
//! system are [`PageHeap`](crate::PageHeap)'s as ever: a hugepage that comes into the filler comes online, one that has no used page any
//! more goes offline, and so is free for long spans, for the cache and for the system.
//!
//! **From.** LLFree (USENIX ATC 2023) packs frames of 2^k; its search prefers trees in use to free ones, and so frees hugepages by
//! itself (§5.5). A span of another length is the front of such a block, of which the rest goes back at once.
//!
//! **Invariants.** P11: a hugepage in the filler is online, and those of its frames are taken that its tracker says are used; all others
//! are offline.
//!
//! **Failure.** A refusal of what P11 says must be possible is a defect; the frames then stay taken, and serve nobody.

use crate::fit::Found;
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
pub(crate) struct Frames<S>(pub(crate) S);

impl<S: FrameSource> Frames<S> {
    const ARE_PAGES: () = assert!(1 << S::HUGE_ORDER == PAGES_PER_HUGEPAGE, "a huge frame is a hugepage");

    /// Takes the pages of a span, at a multiple of `align`.
    pub(crate) fn take(&self, pages: u32, align: u32, density: Density) -> Found {
        let () = Self::ARE_PAGES;
        let block = pages.max(align).next_power_of_two();
        if block > MAX_PAGES {
            // No huge frame that is online is wholly free, but for one that is being collapsed.
            return None;
        }
        let first = self.0.get(block.trailing_zeros(), density).ok()?;
        self.put(first + pages as usize, block - pages);
        let page = PageId(first as u32);
        Some((page.hugepage(), page.in_hugepage()))
    }

    /// Takes pages that are free.
    pub(crate) fn take_at(&self, id: HugePageId, at: u32, pages: u32) {
        let taken = self.0.get_at(first(id, at), pages as usize);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }

    fn put(&self, first: usize, pages: u32) {
        let given = self.0.put(first, pages as usize);
        debug_assert!(given.is_ok(), "{given:?}");
    }

    /// Brings a hugepage online, with its used pages taken.
    pub(crate) fn adopt(&self, id: HugePageId, used: &PageBits) {
        let online = self.0.online(first(id, 0), 1);
        debug_assert!(online.is_ok(), "{online:?}");
        self.follow(id, &PageBits::EMPTY, used);
    }

    /// Takes a hugepage offline, whatever is used of it.
    pub(crate) fn expel(&self, id: HugePageId, used: &PageBits) {
        self.follow(id, used, &PageBits::EMPTY);
        let offline = self.0.offline(first(id, 0), 1);
        debug_assert!(offline.is_ok(), "{offline:?}");
    }

    /// Does with frames what was done with pages.
    pub(crate) fn follow(&self, id: HugePageId, old: &PageBits, new: &PageBits) {
        for (at, pages) in old.minus(new).complement().clear_runs() {
            self.put(first(id, at), pages);
        }
        for (at, pages) in new.minus(old).complement().clear_runs() {
            self.take_at(id, at, pages);
        }
    }
}

/// A page's number.
fn first(id: HugePageId, at: u32) -> usize {
    (id.first_page().0 + at) as usize
}
