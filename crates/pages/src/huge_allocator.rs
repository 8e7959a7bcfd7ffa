//! Whole hugepages without memory: address space that was never used, or whose memory went back.
//!
//! **From.** TEMERAIRE §4.2. Free ranges are kept by [`crate::ranges`]; here is where new ones come from. Address space is made
//! usable in large steps from the region's front on, so that it is one mapping of the system's however large it grows.

use crate::backing::LONG;
use crate::fit::Fit;
use crate::heap::PageHeap;
use crate::tracker::Place;
use craton_base::{Clock, Floor, FrameSource, HugePageId, HugePages, NoMemory};

/// Address space is made usable in steps of at least 32 MiB.
const GROW_MIN: HugePages = HugePages(16);
/// Hugepages at the region's front that are left out for that, at the most.
const MOST_LEFT_OUT: u32 = 64;

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// Takes hugepages without memory. What is long is worth hugepages of the machine in a small heap too, so it leaves the
    /// region's front alone, where they are not asked for; what is short goes there first.
    pub(crate) fn take_unbacked(&mut self, len: HugePages, align: HugePages) -> Result<HugePageId, NoMemory> {
        let from = self.backing().from.0;
        let front = if from <= MOST_LEFT_OUT { from } else { 0 };
        let first = if len >= LONG {
            self.take_granted_or_grow(len, align, front).or_else(|_| self.take_granted_or_grow(len, align, 0))
        } else {
            let in_front = self.unbacked.take(&mut self.trackers, len, align, 0..front);
            in_front.map_or_else(|| self.take_granted_or_grow(len, align, 0), Ok)
        };
        let first = first.or_else(|refused| self.take_mixed(len, align).ok_or(refused))?;
        self.expect_backing(first, len, len);
        Ok(first)
    }

    /// Takes hugepages without memory from `least` on.
    pub(crate) fn take_granted_or_grow(
        &mut self,
        len: HugePages,
        align: HugePages,
        least: u32,
    ) -> Result<HugePageId, NoMemory> {
        match self.unbacked.take(&mut self.trackers, len, align, least..u32::MAX) {
            Some(first) => Ok(first),
            None => self.grow(len, align, least),
        }
    }

    /// Takes hugepages from where free ones of both kinds, or not yet granted ones, lie side by side: a walk over the region, and
    /// so the last resort.
    #[cold]
    fn take_mixed(&mut self, len: HugePages, align: HugePages) -> Option<HugePageId> {
        let mut start = 0u32;
        while start.checked_add(len.0)? <= self.capacity.0 {
            let end = (start + len.0).min(self.granted.0);
            // The last one in the way; the next place to look is behind it.
            let taken = (start..end).rev().find(|i| {
                let place = self.trackers[*i as usize].place;
                place != Place::Unbacked && place != Place::Cached
            });
            match taken {
                Some(i) => start = (i + 1).next_multiple_of(align.0),
                None => {
                    let first = HugePageId(start);
                    return self.free_from(first, len).then(|| {
                        self.take_from(first, len, len);
                        first
                    });
                }
            }
        }
        None
    }

    /// Makes more address space usable and takes `len` hugepages of it.
    #[cold]
    fn grow(&mut self, len: HugePages, align: HugePages, least: u32) -> Result<HugePageId, NoMemory> {
        // What is free at the end of the region already counts.
        let free = self.unbacked.run_at_end(&self.trackers);
        let start = (self.granted.0 - free.0).max(least).next_multiple_of(align.0);
        self.grow_to(HugePages(start.checked_add(len.0).ok_or(NoMemory)?))?;
        Ok(self.unbacked.take(&mut self.trackers, len, align, least..u32::MAX).expect("just granted"))
    }

    /// Makes at least `need` hugepages usable, and more if that is not refused: steps are large, so that they are rare.
    fn grow_to(&mut self, need: HugePages) -> Result<(), NoMemory> {
        if need > self.capacity {
            return Err(NoMemory);
        }
        let step = (self.granted.0 / 4).max(GROW_MIN.0);
        let generous = HugePages(need.0.max(self.granted.0 + step).min(self.capacity.0));
        let granted = match self.floor.reserve(generous) {
            Ok(()) => generous,
            Err(NoMemory) => {
                self.floor.reserve(need)?;
                need
            }
        };
        let old = core::mem::replace(&mut self.granted, granted);
        self.unbacked.set_end(granted);
        self.cached.set_end(granted);
        self.advise_granted(HugePageId(old.0));
        self.unbacked.insert(&mut self.trackers, HugePageId(old.0), HugePages(granted.0 - old.0));
        Ok(())
    }

    /// Whether the `len` hugepages from `at` on are free, growing the region when it ends there.
    pub(crate) fn free_from(&mut self, at: HugePageId, len: HugePages) -> bool {
        let mut end = at.0;
        while end < at.0 + len.0 {
            let run = self.cached.run_from(&self.trackers, HugePageId(end)).0
                + self.unbacked.run_from(&self.trackers, HugePageId(end)).0;
            if run == 0 {
                break;
            }
            end += run;
        }
        if end >= at.0 + len.0 {
            return true;
        }
        if end != self.granted.0 {
            return false;
        }
        self.grow_to(HugePages(at.0 + len.0)).is_ok()
    }

    /// Takes the free hugepages `at..at + len`, of whichever kind they are, for a span of `span` hugepages.
    pub(crate) fn take_from(&mut self, at: HugePageId, len: HugePages, span: HugePages) {
        let (mut at, end) = (at.0, at.0 + len.0);
        while at < end {
            let id = HugePageId(at);
            let cached = self.cached.run_from(&self.trackers, id).0.min(end - at);
            let unbacked = self.unbacked.run_from(&self.trackers, id).0.min(end - at);
            if cached > 0 {
                self.cached.take_at(&mut self.trackers, id, HugePages(cached));
            } else {
                self.unbacked.take_at(&mut self.trackers, id, HugePages(unbacked));
            }
            self.expect_backing(id, HugePages(cached.max(unbacked)), span);
            at += cached + unbacked;
        }
        self.note_demand();
    }
}
