//! What the page heap knows of one hugepage.
//!
//! **From.** TEMERAIRE §4.4: bitmap, longest free range L, allocations A, used pages U.
//!
//! **State.** 128 bytes, two cache lines; all zeros stand for a hugepage that has not been granted
//! yet. `L` is kept, not sought: giving pages back can only lengthen the range around them, and
//! taking pages shortens the longest range only if they came from it.
//!
//! **Unsafe.** Declares that zeros are a valid tracker.

use crate::filler::Family;
use core::marker::PhantomData;
use core::ops::ControlFlow;
use craton_base::{Bytes, Geometry, Huge2M, PageBits, Pages, Table, Zeroed};

/// Where a hugepage is (P1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
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
    /// Part of a region, whose spans cross hugepages.
    Region,
}

/// The record of one hugepage. Tests tell states apart by its hash.
#[derive(Default, Hash, Debug)]
#[repr(align(128))]
pub struct Tracker<G = Huge2M> {
    /// Pages in spans.
    used: PageBits<G>,
    /// First pages of the spans that begin here.
    starts: PageBits<G>,
    /// Pages handed out at least once since they were last unbacked: they may have memory, and need
    /// not read as zeros (P5).
    touched: PageBits<G>,
    /// Link to the next hugepage of the same list or bin, plus 1; 0 ends it.
    pub(crate) next: u32,
    /// Link to the previous one, plus 1; 0 when this is the first.
    pub(crate) prev: u32,
    /// At both ends of a free range: its length in hugepages. At a region's first hugepage: its
    /// longest free range in pages.
    pub(crate) run: u32,
    used_pages: u16,
    longest_free: u16,
    allocs: u16,
    /// How many pages are in `touched`: counting bits is slow where the machine is not asked for an
    /// instruction for it.
    touched_pages: u16,
    /// The list of its family that this hugepage is on, plus 1; 0 outside the filler.
    pub(crate) list: u16,
    /// The family that it is listed in.
    pub(crate) family: Family,
    pub(crate) place: Place,
    /// Holds spans of many small objects only.
    pub(crate) dense: bool,
    /// In the filler because a large span left its tail here; such hugepages are used last (§4.1).
    pub(crate) donated: bool,
    /// Some of its free pages were released one by one.
    pub(crate) broken: bool,
    /// Backed as a whole by one hugepage of the machine, as far as we know: also pages that nobody
    /// touched have memory.
    pub(crate) intact: bool,
    /// Advised against hugepages, so that the system does not fill what was released from it.
    pub(crate) guarded: bool,
    /// Hugepages are asked for here although it lies in front of where that begins.
    pub(crate) asked: bool,
    /// Being collapsed at this moment; its memory must not be released meanwhile.
    pub(crate) collapsing: bool,
    geometry: PhantomData<G>,
}

/// One for each hugepage that the heap may have.
pub(crate) type Trackers<G> = Table<Tracker<G>>;

// SAFETY: zeros are empty bit sets, null links, counts of 0, `Place::Beyond`, `Family::Sparse` and
// `false`s.
unsafe impl<G: Geometry> Zeroed for Tracker<G> {}

const _: () = assert!(size_of::<Tracker>() == 128);

impl<G: Geometry> Tracker<G> {
    /// Makes the record that of an empty hugepage, keeping what is known of its memory.
    pub(crate) fn reset(&mut self) {
        self.used = PageBits::EMPTY;
        self.starts = PageBits::EMPTY;
        self.used_pages = 0;
        self.longest_free = G::PAGES as u16;
        self.allocs = 0;
        self.dense = false;
        self.donated = false;
        self.broken = false;
    }

    /// Notes that the hugepage has no memory any more; returns how many pages had.
    pub(crate) fn unbacked(&mut self) -> u32 {
        let lost = self.backed_pages();
        self.touched = PageBits::EMPTY;
        self.touched_pages = 0;
        self.intact = false;
        lost
    }

    pub(crate) fn used(&self) -> &PageBits<G> {
        &self.used
    }
    pub(crate) fn starts(&self) -> &PageBits<G> {
        &self.starts
    }
    /// Used pages, U.
    pub(crate) fn used_pages(&self) -> u32 {
        self.used_pages.into()
    }
    /// Longest free range in pages, L.
    pub(crate) fn longest_free(&self) -> u32 {
        self.longest_free.into()
    }
    /// Spans in this hugepage, A; one that began before it counts too.
    pub(crate) fn allocs(&self) -> u32 {
        self.allocs.into()
    }
    /// Pages that may have memory.
    pub(crate) fn backed_pages(&self) -> u32 {
        if self.intact { G::PAGES } else { self.touched_pages.into() }
    }

    /// Whether all of so many pages may have memory.
    pub(crate) fn has_memory(&self, first: u32, pages: u32) -> bool {
        self.intact || self.touched.count(first, pages) == pages
    }

    /// Free pages that may have memory.
    pub(crate) fn free_backed(&self) -> PageBits<G> {
        if self.intact { self.used.complement() } else { self.touched.minus(&self.used) }
    }

    /// The largest free block, as [`PageBits::largest_clear_block`] counts it.
    #[inline]
    pub(crate) fn largest_block(&self) -> u32 {
        // Most hugepages of small objects are nearly full.
        if self.longest_free <= 1 { self.longest_free() } else { self.used.largest_clear_block() }
    }

    /// The best place for `pages` at a multiple of `align` pages: the smallest free range that
    /// holds it.
    pub(crate) fn best_fit(&self, pages: u32, align: u32) -> Option<u32> {
        if pages > self.longest_free() {
            return None;
        }
        let (mut best, mut shortest) = (0, u32::MAX);
        self.used.try_clear_runs(|first, len| {
            let at = (first + align - 1) & !(align - 1);
            if at + pages <= first + len && len < shortest {
                (best, shortest) = (at, len);
                if len == pages {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        (shortest != u32::MAX).then_some(best)
    }

    /// Marks a new span's pages used; says whether they read as zeros.
    pub(crate) fn occupy(&mut self, first: u32, pages: u32) -> bool {
        self.starts.insert(first, 1);
        self.carry(first, pages)
    }

    /// As [`Tracker::occupy`], for a span that began in a hugepage before.
    pub(crate) fn carry(&mut self, first: u32, pages: u32) -> bool {
        self.allocs += 1;
        self.extend(first, pages)
    }

    /// Marks pages used without counting a span more: a span of this hugepage became longer.
    pub(crate) fn extend(&mut self, first: u32, pages: u32) -> bool {
        debug_assert_eq!(self.used.count(first, pages), 0);
        let (_, run) = self.used.clear_run_around(first);
        self.used.insert(first, pages);
        self.used_pages += pages as u16;
        if run == self.longest_free() {
            self.longest_free = self.used.longest_clear(run) as u16;
        }
        self.touch(first, pages)
    }

    /// Notes that so many bytes of the hugepage have memory, and that it is on small pages.
    pub(crate) fn came_in_parts(&mut self, resident: Bytes) {
        self.intact = false;
        if resident.0 > Pages(self.touched_pages.into()).bytes().0 {
            // Nobody knows which.
            (self.touched, self.touched_pages) = (PageBits::ALL, G::PAGES as u16);
        }
    }

    /// Notes that pages are handed out; says whether they read as zeros.
    fn touch(&mut self, first: u32, pages: u32) -> bool {
        if self.touched.all(first, pages) {
            return false;
        }
        let before = self.touched.count(first, pages);
        self.touched.insert(first, pages);
        self.touched_pages += (pages - before) as u16;
        before == 0
    }

    /// Notes that pages lost their memory; returns how many had any.
    pub(crate) fn unback(&mut self, first: u32, pages: u32) -> u32 {
        if core::mem::take(&mut self.intact) {
            // All of it had memory until now.
            (self.touched, self.touched_pages) = (PageBits::ALL, G::PAGES as u16);
        }
        let lost = self.touched.count(first, pages);
        self.touched.remove(first, pages);
        self.touched_pages -= lost as u16;
        lost
    }

    /// Whether the pages of `touched` are as many as counted, and all used ones are among them
    /// (P5).
    pub(crate) fn is_touched_right(&self) -> bool {
        self.touched.len() == self.touched_pages.into() && self.used.minus(&self.touched).is_empty()
    }

    /// Marks a span's pages free.
    pub(crate) fn vacate(&mut self, first: u32, pages: u32) {
        self.starts.remove(first, 1);
        self.allocs -= 1;
        self.truncate(first, pages);
    }

    /// Marks pages free without counting a span less: a span of this hugepage became shorter.
    pub(crate) fn truncate(&mut self, first: u32, pages: u32) {
        debug_assert_eq!(self.used.count(first, pages), pages);
        self.used.remove(first, pages);
        self.used_pages -= pages as u16;
        let (_, run) = self.used.clear_run_around(first);
        self.longest_free = self.longest_free.max(run as u16);
    }

    /// Makes the span that begins at `second` the end of that in front of it.
    pub(crate) fn join(&mut self, second: u32) {
        self.starts.remove(second, 1);
        self.allocs -= 1;
    }

    /// Where the span that covers page `at` ends in this hugepage: at the next start, the next free
    /// page, or the hugepage's end.
    pub(crate) fn end_of_span(&self, at: u32) -> u32 {
        self.used.next_clear_or(&self.starts, at + 1)
    }

    /// Whether a span of the hugepage in front goes on here.
    pub(crate) fn continues(&self) -> bool {
        self.used.contains(0) && !self.starts.contains(0)
    }
}

#[cfg(test)]
mod tests;
