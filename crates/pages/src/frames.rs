//! Page frames place short spans: the second page heap.
//!
//! **From.** LLFree (USENIX ATC 2023) packs frames of 2^k and prefers trees in use (§5.5). A span
//! of another length goes into a gap of the lists, else to the front of a block. A hugepage in the
//! filler is online; others are offline (P11).
//! **Booked twice.** The source knows no starts of spans, no backed pages, no order of fullness,
//! and no bits of one hugepage.

use crate::filler::Filler;
use crate::fit::{Fit, Found};
use crate::placement::{Wanted, sealed::Placement};
use crate::tracker::{Tracker, Trackers};
use craton_base::{FrameSource, Geometry, HugePageId, PAGES_PER_HUGEPAGE, PageBits, PageId};

const MAX_PAGES: u32 = PAGES_PER_HUGEPAGE / 2;

pub struct ByFrames<S> {
    source: S,
    /// Saves a full search without a block.
    longest: u32,
}

impl<S: FrameSource> ByFrames<S> {
    const ARE_PAGES: () = assert!(1 << S::HUGE_ORDER == PAGES_PER_HUGEPAGE, "a huge frame is a hugepage");

    /// `source` has an offline huge frame for each possible hugepage.
    pub fn new(source: S) -> Self {
        let () = Self::ARE_PAGES;
        Self { source, longest: 0 }
    }

    fn alloc_block(&mut self, span: Wanted) -> Found {
        let block = span.pages.max(span.align).next_power_of_two();
        // No online huge frame is wholly free, except one being collapsed.
        if block > self.longest.min(MAX_PAGES) {
            return None;
        }
        let Ok(first) = self.source.get(block.trailing_zeros(), span.density) else {
            self.longest = block - 1;
            return None;
        };
        self.put(first + span.pages as usize, block - span.pages);
        let page = PageId(first as u32);
        Some((page.hugepage(), page.in_hugepage()))
    }

    fn alloc_at(&self, id: HugePageId, at: u32, pages: u32) {
        let taken = self.source.get_at(number(id, at), pages as usize);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }

    fn put(&self, first: usize, pages: u32) {
        let given = self.source.put(first, pages as usize);
        debug_assert!(given.is_ok(), "{given:?}");
    }
}

fn number(id: HugePageId, at: u32) -> usize {
    (id.first_page().0 + at) as usize
}

/// By lists until there are frames.
impl<S: FrameSource> Placement for Option<ByFrames<S>> {
    const BY_LISTS: Self = None;

    fn is_by_lists(&self) -> bool {
        self.is_none()
    }

    fn choose<P: Fit, G: Geometry>(&mut self, filler: &Filler<P, G>, trackers: &Trackers<G>, span: Wanted) -> Found {
        let gap = || filler.find(trackers, span.pages, span.align, span.density);
        let Some(frames) = self else { return gap() };
        let is_block = span.pages.is_power_of_two();
        let block = if is_block { frames.alloc_block(span) } else { None };
        block.or_else(|| match gap() {
            Some((id, at)) => {
                frames.alloc_at(id, at, span.pages);
                Some((id, at))
            }
            None if is_block => None,
            None => frames.alloc_block(span),
        })
    }

    fn placed(&mut self, id: HugePageId, at: u32, pages: u32) {
        if let Some(frames) = self {
            frames.alloc_at(id, at, pages);
        }
    }

    fn adopt<G: Geometry>(&mut self, id: HugePageId, t: &Tracker<G>) {
        let Some(frames) = self else { return };
        let online = frames.source.online(number(id, 0), 1);
        debug_assert!(online.is_ok(), "{online:?}");
        frames.longest = frames.longest.max(t.longest_free());
        self.follow(id, &PageBits::EMPTY, t);
    }

    fn expel<G: Geometry>(&mut self, id: HugePageId, t: &Tracker<G>) {
        let Some(frames) = self else { return };
        t.used().complement().clear_runs().for_each(|(at, pages)| frames.put(number(id, at), pages));
        let offline = frames.source.offline(number(id, 0), 1);
        debug_assert!(offline.is_ok(), "{offline:?}");
    }

    fn follow<G: Geometry>(&mut self, id: HugePageId, old: &PageBits<G>, t: &Tracker<G>) {
        let Some(frames) = self else { return };
        let freed = old.minus(t.used());
        if !freed.is_empty() {
            freed.complement().clear_runs().for_each(|(at, pages)| frames.put(number(id, at), pages));
            frames.longest = frames.longest.max(t.longest_free());
        }
        for (at, pages) in t.used().minus(old).complement().clear_runs() {
            frames.alloc_at(id, at, pages);
        }
    }
}

#[cfg(test)]
mod tests;
