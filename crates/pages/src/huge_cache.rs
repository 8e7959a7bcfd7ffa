//! The hugepage cache: whole free hugepages that stay backed, over those without memory.
//!
//! **From.** TEMERAIRE §4.3. A long request may combine backed and unbacked neighbours, to save
//! first touches. **Invariants.** P4, P6. Memory that the floor keeps stays cached.

use crate::cache_limit::CacheLimit;
use crate::huge_allocator::HugeAllocator;
use crate::ranges::Ranges;
use crate::tracker::{Place, Tracker, Trackers};
use craton_base::{Floor, Geometry, HugePageId, HugePages, NoMemory, Pages};

const LOOKS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) first: HugePageId,
    pub(crate) missing: HugePages,
}

pub(crate) struct HugeCache<G> {
    cached: Ranges<{ Place::Cached as u8 }>,
    pub(crate) limit: CacheLimit,
    below: HugeAllocator<G>,
}

impl<G: Geometry> HugeCache<G> {
    pub(crate) const fn new(capacity: HugePages) -> Self {
        Self { cached: Ranges::EMPTY, limit: CacheLimit::MIN, below: HugeAllocator::new(capacity) }
    }

    pub(crate) fn below(&self) -> &HugeAllocator<G> {
        &self.below
    }

    pub(crate) fn total(&self) -> HugePages {
        self.cached.total()
    }

    pub(crate) fn backed(&self) -> Pages {
        self.cached.backed()
    }

    pub(crate) fn out(&self) -> HugePages {
        HugePages(self.below.granted().0 - self.below.free().total().0 - self.cached.total().0)
    }

    pub(crate) fn update(&mut self, t: &mut Tracker<G>, change: impl FnOnce(&mut Tracker<G>)) {
        let old = Pages(t.backed_pages());
        change(t);
        self.cached.rebacked(old, Pages(t.backed_pages()));
    }

    pub(crate) fn alloc(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        len: HugePages,
        align: HugePages,
        front: u32,
    ) -> Result<Taken, NoMemory> {
        if let Some(first) = self.cached.alloc(trackers, len, align, 0..u32::MAX) {
            return Ok(Taken { first, missing: HugePages(0) });
        }
        if let Some(window) = self.find_beside(trackers, len, align) {
            self.alloc_window(trackers, window.first, len);
            return Ok(window);
        }
        let taken = self.below.alloc(trackers, floor, len, align, front);
        self.follow_grant();
        let first = taken.or_else(|refused| self.alloc_mixed(trackers, floor, len, align).ok_or(refused))?;
        Ok(Taken { first, missing: len })
    }

    pub(crate) fn alloc_unbacked(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        len: HugePages,
        align: HugePages,
    ) -> Result<HugePageId, NoMemory> {
        let taken = self.below.alloc(trackers, floor, len, align, 0);
        self.follow_grant();
        taken
    }

    fn follow_grant(&mut self) {
        self.cached.set_end(self.below.granted());
    }

    fn find_beside(&self, trackers: &Trackers<G>, len: HugePages, align: HugePages) -> Option<Taken> {
        if align.0 > 1 || len.0 < 2 {
            return None;
        }
        let unbacked = self.below.free();
        let windows = self.cached.longest(trackers).take(LOOKS).filter_map(|(first, run)| {
            let end = HugePageId(first.0 + run.0);
            let behind = unbacked.run_at_start(trackers, end);
            let next = self.cached.run_at_start(trackers, HugePageId(end.0 + behind.0));
            let before = unbacked.run_before(trackers, first);
            let in_front = len.0.saturating_sub(run.0 + behind.0 + next.0);
            (in_front <= before.0).then(|| {
                let of_next = next.0.min((len.0 - in_front).saturating_sub(run.0 + behind.0));
                Taken { first: HugePageId(first.0 - in_front), missing: HugePages(len.0 - run.0 - of_next) }
            })
        });
        windows.min_by_key(|window| window.missing)
    }

    fn alloc_window(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        let (mut at, end) = (first.0, first.0 + len.0);
        while at < end {
            let place = trackers[at as usize].place;
            let piece = (at..end).take_while(|i| trackers[*i as usize].place == place).count() as u32;
            let (id, part) = (HugePageId(at), HugePages(piece));
            if place == Place::Cached {
                self.cached.alloc_at(trackers, id, part);
            } else if at + piece < end {
                // Constant time, however long the range before.
                self.below.alloc_end(trackers, HugePageId(at + piece), part);
            } else {
                self.below.alloc_at(trackers, id, part);
            }
            at += piece;
        }
    }

    /// Last resort: walks the region.
    #[cold]
    fn alloc_mixed(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        len: HugePages,
        align: HugePages,
    ) -> Option<HugePageId> {
        let mut start = 0u32;
        while start.checked_add(len.0)? <= self.below.capacity().0 {
            let end = (start + len.0).min(self.below.granted().0);
            let taken = (start..end).rev().find(|i| {
                let place = trackers[*i as usize].place;
                place != Place::Unbacked && place != Place::Cached
            });
            match taken {
                Some(i) => start = (i + 1).next_multiple_of(align.0),
                None => {
                    let first = HugePageId(start);
                    return self.is_free(trackers, floor, first, len).then(|| {
                        self.alloc_at(trackers, first, len);
                        first
                    });
                }
            }
        }
        None
    }

    /// Grows the region at its end.
    pub(crate) fn is_free(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        at: HugePageId,
        len: HugePages,
    ) -> bool {
        let (mut end, needed) = (at.0, at.0 + len.0);
        while end < needed {
            let run = self.cached.run_from(trackers, HugePageId(end)).0
                + self.below.free().run_from(trackers, HugePageId(end)).0;
            if run == 0 {
                break;
            }
            end += run;
        }
        if end >= needed || end != self.below.granted().0 {
            return end >= needed;
        }
        let grown = self.below.grow_to(trackers, floor, HugePages(needed)).is_ok();
        self.follow_grant();
        grown
    }

    pub(crate) fn alloc_at(&mut self, trackers: &mut Trackers<G>, at: HugePageId, len: HugePages) {
        let (mut at, end) = (at.0, at.0 + len.0);
        while at < end {
            let id = HugePageId(at);
            let cached = self.cached.run_from(trackers, id).0.min(end - at);
            let unbacked = self.below.free().run_from(trackers, id).0.min(end - at);
            if cached > 0 {
                self.cached.alloc_at(trackers, id, HugePages(cached));
            } else {
                self.below.alloc_at(trackers, id, HugePages(unbacked));
            }
            at += cached + unbacked;
        }
    }

    pub(crate) fn put(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.cached.insert(trackers, first, len);
    }

    pub(crate) fn put_unbacked(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.below.put(trackers, first, len);
    }

    /// Returns pages.
    pub(crate) fn release(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, want: HugePages) -> u64 {
        let (mut left, mut lost) = (want.0, 0);
        while left > 0 {
            let Some((first, len)) = self.cached.any(trackers) else { break };
            let part = HugePages(len.0.min(left));
            if floor.unback(G::run(first, part)).is_err() {
                break;
            }
            self.cached.alloc_at(trackers, first, part);
            for i in first.0..first.0 + part.0 {
                lost += u64::from(trackers[i as usize].unbacked());
            }
            self.below.put(trackers, first, part);
            left -= part.0;
        }
        lost
    }
}

#[cfg(test)]
mod tests;
