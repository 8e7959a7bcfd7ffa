//! The page heap's record of one hugepage: two cache lines; all zeros: not yet granted.
//!
//! **From.** TEMERAIRE §4.4: bitmap, longest free range L, allocations A, used pages U.
//! **Unsafe.** Declares that zeros are a valid tracker.

use crate::filler::Family;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::ControlFlow;
use craton_base::{Bytes, Geometry, Huge2M, PageBits, Pages, Table, Zeroed};

/// P1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub(crate) enum Place {
    /// Not granted.
    #[default]
    Beyond = 0,
    /// Free, without memory.
    Unbacked,
    /// Free, with memory.
    Cached,
    /// With short spans.
    Filler,
    /// Part of a span of several hugepages.
    Large,
    Region,
}

/// Where the system would give a hugepage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub(crate) enum Left {
    #[default]
    Not = 0,
    Later,
    /// It keeps no free memory.
    Unsure,
}

#[derive(Default, Hash, Debug)]
#[repr(align(128))]
pub struct Tracker<G = Huge2M> {
    used: PageBits<G>,
    /// Of spans.
    starts: PageBits<G>,
    /// Handed out since last unbacked: may be non-zero (P5).
    touched: PageBits<G>,
    /// In list or bin, plus 1; 0: none.
    pub(crate) next: u32,
    pub(crate) prev: u32,
    /// At both ends of a free range: its hugepages. At a region's head: its longest, in pages.
    pub(crate) run: u32,
    used_pages: u16,
    longest_free: u16,
    allocs: u16,
    /// Counting is slow without the CPU's instruction.
    touched_pages: u16,
    /// Plus 1; 0: no list.
    pub(crate) list: u16,
    pub(crate) family: Family,
    pub(crate) place: Place,
    pub(crate) dense: bool,
    /// By a large span's tail; used last (§4.1).
    pub(crate) donated: bool,
    /// Free pages were released singly.
    pub(crate) broken: bool,
    /// As far as known: untouched pages have memory too.
    pub(crate) intact: bool,
    /// Released pages are not refilled.
    pub(crate) guarded: bool,
    /// Requested although before the threshold.
    pub(crate) asked: bool,
    pub(crate) left: Left,
    /// It must stay backed.
    pub(crate) collapsing: bool,
    geometry: PhantomData<G>,
}

pub(crate) type Trackers<G> = Table<Tracker<G>>;

// SAFETY: empty bit sets, null links, counts of 0, first variants and `false`s.
unsafe impl<G: Geometry> Zeroed for Tracker<G> {}

const _: () = assert!(size_of::<Tracker>() == 128);

impl Tracker {
    /// For readers of another process.
    pub const SHAPE: [(&'static str, usize); 11] = [
        ("tracker.bytes", size_of::<Self>()),
        ("tracker.used_pages", offset_of!(Self, used_pages)),
        ("tracker.longest_free", offset_of!(Self, longest_free)),
        ("tracker.allocs", offset_of!(Self, allocs)),
        ("tracker.place", offset_of!(Self, place)),
        ("tracker.dense", offset_of!(Self, dense)),
        ("tracker.donated", offset_of!(Self, donated)),
        ("tracker.broken", offset_of!(Self, broken)),
        ("tracker.intact", offset_of!(Self, intact)),
        ("tracker.guarded", offset_of!(Self, guarded)),
        ("tracker.collapsing", offset_of!(Self, collapsing)),
    ];
}

impl<G: Geometry> Tracker<G> {
    /// Keeps what is known of its memory.
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

    /// Returns the pages that had memory.
    pub(crate) fn unbacked(&mut self) -> u32 {
        let lost = self.backed_pages();
        self.touched = PageBits::EMPTY;
        self.touched_pages = 0;
        self.intact = false;
        lost
    }

    pub(crate) fn is_small(&self) -> bool {
        self.left != Left::Not
    }
    pub(crate) fn used(&self) -> &PageBits<G> {
        &self.used
    }
    pub(crate) fn starts(&self) -> &PageBits<G> {
        &self.starts
    }
    pub(crate) fn used_pages(&self) -> u32 {
        self.used_pages.into()
    }
    pub(crate) fn longest_free(&self) -> u32 {
        self.longest_free.into()
    }
    pub(crate) fn allocs(&self) -> u32 {
        self.allocs.into()
    }
    pub(crate) fn backed_pages(&self) -> u32 {
        if self.intact { G::PAGES } else { self.touched_pages.into() }
    }

    pub(crate) fn has_memory(&self, first: u32, pages: u32) -> bool {
        self.intact || self.touched.count(first, pages) == pages
    }

    pub(crate) fn free_backed(&self) -> PageBits<G> {
        if self.intact { self.used.complement() } else { self.touched.minus(&self.used) }
    }

    #[inline]
    pub(crate) fn largest_block(&self) -> u32 {
        if self.longest_free <= 1 { self.longest_free() } else { self.used.largest_clear_block() }
    }

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

    /// Whether they read as zeros.
    pub(crate) fn occupy(&mut self, first: u32, pages: u32) -> bool {
        self.starts.insert(first, 1);
        self.carry(first, pages)
    }

    /// Of a span that began in an earlier hugepage.
    pub(crate) fn carry(&mut self, first: u32, pages: u32) -> bool {
        self.allocs += 1;
        self.extend(first, pages)
    }

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

    pub(crate) fn came_in_parts(&mut self, resident: Bytes) {
        self.intact = false;
        if resident.0 > Pages(self.touched_pages.into()).bytes().0 {
            (self.touched, self.touched_pages) = (PageBits::ALL, G::PAGES as u16);
        }
    }

    /// Whether they read as zeros.
    fn touch(&mut self, first: u32, pages: u32) -> bool {
        if self.touched.all(first, pages) {
            return false;
        }
        let before = self.touched.count(first, pages);
        self.touched.insert(first, pages);
        self.touched_pages += (pages - before) as u16;
        before == 0
    }

    /// Returns how many had memory.
    pub(crate) fn unback(&mut self, first: u32, pages: u32) -> u32 {
        if core::mem::take(&mut self.intact) {
            (self.touched, self.touched_pages) = (PageBits::ALL, G::PAGES as u16);
        }
        let lost = self.touched.count(first, pages);
        self.touched.remove(first, pages);
        self.touched_pages -= lost as u16;
        lost
    }

    /// P5.
    pub(crate) fn is_touched_right(&self) -> bool {
        self.touched.len() == self.touched_pages.into() && self.used.minus(&self.touched).is_empty()
    }

    pub(crate) fn vacate(&mut self, first: u32, pages: u32) {
        self.starts.remove(first, 1);
        self.allocs -= 1;
        self.truncate(first, pages);
    }

    pub(crate) fn truncate(&mut self, first: u32, pages: u32) {
        debug_assert_eq!(self.used.count(first, pages), pages);
        self.used.remove(first, pages);
        self.used_pages -= pages as u16;
        let (_, run) = self.used.clear_run_around(first);
        self.longest_free = self.longest_free.max(run as u16);
    }

    pub(crate) fn recut(&mut self, first: u32, pages: u32, each: u32) {
        self.allocs -= self.starts.count(first, pages) as u16;
        self.starts.remove(first, pages);
        for at in (first..first + pages).step_by(each as usize) {
            self.starts.insert(at, 1);
            self.allocs += 1;
        }
    }

    pub(crate) fn end_of_span(&self, at: u32) -> u32 {
        self.used.next_clear_or(&self.starts, at + 1)
    }

    pub(crate) fn continues(&self) -> bool {
        self.used.contains(0) && !self.starts.contains(0)
    }
}

#[cfg(test)]
mod tests;
