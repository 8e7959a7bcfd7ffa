//! Free ranges of hugepages of one kind, unbacked or cached.
//!
//! **From.** TEMERAIRE §4.2. Boundary tags in the trackers and bins by log2 replace the treap:
//! constant time, a nearly best fit. **Invariants.** P1, P4.

use crate::tracker::{Place, Trackers};
use core::ops::Range;
use craton_base::{Geometry, HugePageId, HugePages, Pages};

const BINS: usize = 25;
const LOOKS: usize = 8;

/// All zeros: empty.
pub(crate) struct Ranges<const PLACE: u8> {
    bins: [u32; BINS],
    total: HugePages,
    backed: u32,
    /// Later trackers must not be read.
    end: u32,
}

fn bin(len: u32) -> usize {
    (u32::BITS - 1 - len.leading_zeros()) as usize
}

impl<const PLACE: u8> Ranges<PLACE> {
    pub(crate) const EMPTY: Self = Self { bins: [0; BINS], total: HugePages(0), backed: 0, end: 0 };

    const PLACE: Place = if PLACE == Place::Unbacked as u8 { Place::Unbacked } else { Place::Cached };

    pub(crate) fn total(&self) -> HugePages {
        self.total
    }

    pub(crate) fn backed(&self) -> Pages {
        Pages(self.backed)
    }

    pub(crate) fn rebacked(&mut self, old: Pages, new: Pages) {
        self.backed = self.backed - old.0 + new.0;
    }

    pub(crate) fn set_end(&mut self, granted: HugePages) {
        self.end = granted.0;
    }

    /// Resets the trackers.
    pub(crate) fn insert<G: Geometry>(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.total.0 += len.0;
        for i in first.0..first.0 + len.0 {
            let t = &mut trackers[i as usize];
            t.reset();
            t.place = Self::PLACE;
            self.backed += t.backed_pages();
        }
        let (mut first, mut len) = (first.0, len.0);
        if first > 0 && trackers[first as usize - 1].place == Self::PLACE {
            let before = trackers[first as usize - 1].run;
            first -= before;
            len += before;
            self.unlink(trackers, first);
        }
        let behind = first + len;
        if behind < self.end && trackers[behind as usize].place == Self::PLACE {
            self.unlink(trackers, behind);
            len += trackers[behind as usize].run;
        }
        self.link(trackers, first, len);
    }

    /// At a range's front.
    pub(crate) fn alloc<G: Geometry>(
        &mut self,
        trackers: &mut Trackers<G>,
        len: HugePages,
        align: HugePages,
        within: Range<u32>,
    ) -> Option<HugePageId> {
        let place = |first: u32| first.max(within.start).next_multiple_of(align.0);
        for b in bin(len.0)..BINS {
            let mut best: Option<(u32, u32)> = None;
            let mut at = self.bins[b];
            for _ in 0..LOOKS {
                let Some(first) = at.checked_sub(1) else { break };
                let (run, start) = (trackers[first as usize].run, place(first));
                if start + len.0 <= (first + run).min(within.end) && best.is_none_or(|(_, r)| run < r) {
                    best = Some((first, run));
                }
                at = trackers[first as usize].next;
            }
            if let Some((first, _)) = best {
                let start = HugePageId(place(first));
                self.split(trackers, first, start, len);
                return Some(start);
            }
        }
        None
    }

    pub(crate) fn run_from<G: Geometry>(&self, trackers: &Trackers<G>, at: HugePageId) -> HugePages {
        if at.0 >= self.end || trackers[at.0 as usize].place != Self::PLACE {
            return HugePages(0);
        }
        let start = Self::start_of(trackers, at);
        HugePages(start + trackers[start as usize].run - at.0)
    }

    /// At the start of a range; constant time.
    pub(crate) fn run_at_start<G: Geometry>(&self, trackers: &Trackers<G>, at: HugePageId) -> HugePages {
        let here = at.0 < self.end && trackers[at.0 as usize].place == Self::PLACE;
        HugePages(if here { trackers[at.0 as usize].run } else { 0 })
    }

    /// No free hugepage follows; constant time.
    pub(crate) fn run_before<G: Geometry>(&self, trackers: &Trackers<G>, end: HugePageId) -> HugePages {
        let there = end.0 > 0 && trackers[end.0 as usize - 1].place == Self::PLACE;
        HugePages(if there { trackers[end.0 as usize - 1].run } else { 0 })
    }

    pub(crate) fn alloc_end<G: Geometry>(&mut self, trackers: &mut Trackers<G>, end: HugePageId, len: HugePages) {
        let start = end.0 - trackers[end.0 as usize - 1].run;
        self.split(trackers, start, HugePageId(end.0 - len.0), len);
    }

    pub(crate) fn longest<'a, G: Geometry>(
        &'a self,
        trackers: &'a Trackers<G>,
    ) -> impl Iterator<Item = (HugePageId, HugePages)> + 'a {
        self.bins.iter().rev().flat_map(move |head| {
            core::iter::successors(head.checked_sub(1), move |at| trackers[*at as usize].next.checked_sub(1))
                .map(|first| (HugePageId(first), HugePages(trackers[first as usize].run)))
        })
    }

    /// For aligned places inside a range.
    fn start_of<G: Geometry>(trackers: &Trackers<G>, at: HugePageId) -> u32 {
        let before = (0..at.0).rev().take_while(|i| trackers[*i as usize].place == Self::PLACE).count();
        at.0 - before as u32
    }

    pub(crate) fn run_at_end<G: Geometry>(&self, trackers: &Trackers<G>) -> HugePages {
        match self.end.checked_sub(1) {
            Some(last) if trackers[last as usize].place == Self::PLACE => HugePages(trackers[last as usize].run),
            _ => HugePages(0),
        }
    }

    pub(crate) fn alloc_at<G: Geometry>(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        let start = Self::start_of(trackers, first);
        self.split(trackers, start, first, len);
    }

    fn split<G: Geometry>(&mut self, trackers: &mut Trackers<G>, start: u32, first: HugePageId, len: HugePages) {
        let run = trackers[start as usize].run;
        debug_assert!(start <= first.0 && start + run >= first.0 + len.0);
        self.unlink(trackers, start);
        for i in first.0..first.0 + len.0 {
            let t = &mut trackers[i as usize];
            t.place = Place::Large;
            self.backed -= t.backed_pages();
        }
        self.total.0 -= len.0;
        if first.0 > start {
            self.link(trackers, start, first.0 - start);
        }
        let end = first.0 + len.0;
        if start + run > end {
            self.link(trackers, end, start + run - end);
        }
    }

    /// Large requests want the long ones back.
    pub(crate) fn any<G: Geometry>(&self, trackers: &Trackers<G>) -> Option<(HugePageId, HugePages)> {
        let mut at = *self.bins.iter().find(|head| **head != 0)?;
        let mut shortest: Option<(u32, u32)> = None;
        for _ in 0..LOOKS {
            let Some(first) = at.checked_sub(1) else { break };
            let t = &trackers[first as usize];
            if shortest.is_none_or(|(_, run)| t.run < run) {
                shortest = Some((first, t.run));
            }
            at = t.next;
        }
        shortest.map(|(first, run)| (HugePageId(first), HugePages(run)))
    }

    fn link<G: Geometry>(&mut self, trackers: &mut Trackers<G>, first: u32, len: u32) {
        let b = bin(len);
        let head = self.bins[b];
        if head != 0 {
            trackers[(head - 1) as usize].prev = first + 1;
        }
        trackers[(first + len - 1) as usize].run = len;
        let t = &mut trackers[first as usize];
        (t.run, t.next, t.prev) = (len, head, 0);
        self.bins[b] = first + 1;
    }

    fn unlink<G: Geometry>(&mut self, trackers: &mut Trackers<G>, first: u32) {
        let t = &mut trackers[first as usize];
        let (b, next, prev) = (bin(t.run), t.next, t.prev);
        (t.next, t.prev) = (0, 0);
        if next != 0 {
            trackers[(next - 1) as usize].prev = prev;
        }
        if prev != 0 {
            trackers[(prev - 1) as usize].next = next;
        } else {
            debug_assert_eq!(self.bins[b], first + 1);
            self.bins[b] = next;
        }
    }
}

#[cfg(test)]
mod tests;
