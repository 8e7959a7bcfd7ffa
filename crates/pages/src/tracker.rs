//! What the page heap knows of one hugepage.
//!
//! **From.** TEMERAIRE §4.4: bitmap, longest free range L, allocations A, used pages U.
//!
//! **State.** 88 bytes; all zeros stand for a hugepage that has not been granted yet.
//!
//! **Unsafe.** Declares that zeros are a valid tracker.

use craton_base::{Bits256, PAGES_PER_HUGEPAGE, Zeroed};

/// Where a hugepage is (P1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Place {
    /// Beyond what the floor granted.
    #[default]
    Beyond = 0,
    /// Free, no memory behind it.
    Unbacked,
    /// Free, with memory.
    Cached,
    /// Packed with spans by the filler.
    Filler,
    /// All of it belongs to one span of several hugepages.
    Large,
}

/// The record of one hugepage.
#[derive(Default, Debug)]
pub struct Tracker {
    /// Pages in spans.
    used: Bits256,
    /// Pages that may have memory: handed out at least once since they were last unbacked (P5).
    pub(crate) touched: Bits256,
    /// Link to the next hugepage of the same list or bin, plus 1; 0 ends it.
    pub(crate) next: u32,
    /// Link to the previous one, plus 1; 0 when this is the first.
    pub(crate) prev: u32,
    /// At both ends of a free range: its length in hugepages.
    pub(crate) run: u32,
    used_pages: u16,
    longest_free: u16,
    allocs: u16,
    /// The filler's list that this hugepage is on, plus 1.
    pub(crate) list: u16,
    pub(crate) place: Place,
    /// In the filler because a large span left its tail here; such hugepages are used last (§4.1).
    pub(crate) donated: bool,
    /// Some of its free pages were released one by one.
    pub(crate) broken: bool,
}

// SAFETY: zeros are empty bit sets, null links, counts of 0, `Place::Beyond` and `false`s.
unsafe impl Zeroed for Tracker {}

impl Tracker {
    /// Makes the record that of an empty hugepage, keeping what is known of its memory.
    pub(crate) fn reset(&mut self) {
        self.used = Bits256::EMPTY;
        self.used_pages = 0;
        self.longest_free = PAGES_PER_HUGEPAGE as u16;
        self.allocs = 0;
        self.donated = false;
        self.broken = false;
    }

    pub(crate) fn used(&self) -> &Bits256 {
        &self.used
    }
    /// Used pages, U.
    pub(crate) fn used_pages(&self) -> u32 {
        self.used_pages.into()
    }
    /// Longest free range in pages, L.
    pub(crate) fn longest_free(&self) -> u32 {
        self.longest_free.into()
    }
    /// Spans in this hugepage, A.
    pub(crate) fn allocs(&self) -> u32 {
        self.allocs.into()
    }
    /// The best place for `pages` at a multiple of `align` pages: the smallest free range that holds it.
    pub(crate) fn best_fit(&self, pages: u32, align: u32) -> Option<u32> {
        let mut best: Option<(u32, u32)> = None;
        for (first, len) in self.used.clear_runs() {
            let at = first.next_multiple_of(align);
            if at + pages <= first + len && best.is_none_or(|(_, l)| len < l) {
                best = Some((at, len));
            }
        }
        best.map(|(at, _)| at)
    }

    /// Marks `first..first + pages` used; says whether the span reads as zeros.
    pub(crate) fn occupy(&mut self, first: u32, pages: u32) -> bool {
        let zeroed = self.extend(first, pages);
        self.allocs += 1;
        zeroed
    }

    /// Marks pages used without counting a span more: a span of this hugepage became longer.
    pub(crate) fn extend(&mut self, first: u32, pages: u32) -> bool {
        debug_assert_eq!(self.used.count(first, pages), 0);
        let zeroed = self.touched.count(first, pages) == 0;
        self.used.insert(first, pages);
        self.touched.insert(first, pages);
        self.used_pages += pages as u16;
        self.longest_free = self.used.longest_clear() as u16;
        zeroed
    }

    /// Marks a span's pages free.
    pub(crate) fn vacate(&mut self, first: u32, pages: u32) {
        self.truncate(first, pages);
        self.allocs -= 1;
    }

    /// Marks pages free without counting a span less: a span of this hugepage became shorter.
    pub(crate) fn truncate(&mut self, first: u32, pages: u32) {
        debug_assert_eq!(self.used.count(first, pages), pages);
        self.used.remove(first, pages);
        self.used_pages -= pages as u16;
        self.longest_free = self.used.longest_clear() as u16;
    }
}
