//! Walks every invariant of the page heap.

use crate::filler::Filler;
use crate::heap::PageHeap;
use crate::lists::LISTS;
use crate::tracker::Place;
use craton_base::{Clock, Floor, HugePageId, PAGES_PER_HUGEPAGE};

/// An invariant that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its id, as the crate's theory names it.
    pub invariant: &'static str,
    /// The hugepage where that was seen.
    pub at: HugePageId,
}

impl<F: Floor, C: Clock> PageHeap<F, C> {
    /// Walks P1 to P6; the first that fails is returned. Takes time in proportion to the granted hugepages.
    pub fn check(&self) -> Result<(), Broken> {
        let mut counts = [0u32; 5];
        for i in 0..self.granted.0 {
            let at = HugePageId(i);
            let fail = |invariant| Err(Broken { invariant, at });
            let t = &self.trackers[i as usize];
            counts[t.place as usize] += 1;
            if t.used().len() != t.used_pages() || t.used().longest_clear() != t.longest_free() {
                return fail("P2");
            }
            if t.allocs() > t.used_pages() || (t.allocs() == 0) != (t.used_pages() == 0) {
                return fail("P2");
            }
            if !t.used().minus(&t.touched).is_empty() {
                return fail("P5");
            }
            let previous = i.checked_sub(1).map(|p| self.trackers[p as usize].place);
            let ok = match t.place {
                Place::Beyond => return fail("P1"),
                Place::Unbacked if !t.touched.is_empty() => return fail("P6"),
                Place::Unbacked | Place::Cached => {
                    if previous != Some(t.place) && !self.is_range(at, t.run, t.place) {
                        return fail("P4");
                    }
                    t.used_pages() == 0 && t.list == 0
                }
                Place::Filler if t.list != Filler::list_of(t) => return fail("P3"),
                Place::Filler => t.used_pages() > 0,
                Place::Large => t.used_pages() == PAGES_PER_HUGEPAGE && t.list == 0,
            };
            if !ok {
                return fail("P1");
            }
        }
        self.check_sums(&counts)
    }

    /// Whether a free range of `len` hugepages of one place begins at `first` and is marked at both ends.
    fn is_range(&self, first: HugePageId, len: u32, place: Place) -> bool {
        let end = first.0 + len;
        len > 0
            && end <= self.granted.0
            && (first.0..end).all(|i| self.trackers[i as usize].place == place)
            && self.trackers[end as usize - 1].run == len
            && (end == self.granted.0 || self.trackers[end as usize].place != place)
    }

    fn check_sums(&self, counts: &[u32; 5]) -> Result<(), Broken> {
        let sums = self.unbacked.total().0 == counts[Place::Unbacked as usize]
            && self.cached.total().0 == counts[Place::Cached as usize]
            && self.filler.len() == counts[Place::Filler as usize];
        let at = HugePageId(self.granted.0);
        if !sums {
            return Err(Broken { invariant: "P1", at });
        }
        if self.stats().in_use != self.in_use() {
            return Err(Broken { invariant: "P1", at });
        }
        let mut used = 0;
        let mut listed = 0;
        for family in 0..crate::filler::FAMILIES {
            for list in 0..LISTS {
                for id in self.filler.walk(&self.trackers, family, list) {
                    let t = &self.trackers[id.0 as usize];
                    if t.place != Place::Filler || t.list as usize != family * LISTS + list + 1 {
                        return Err(Broken { invariant: "P3", at: id });
                    }
                    listed += 1;
                    used += t.used_pages();
                }
            }
        }
        if listed != self.filler.len() || used != self.filler.used().0 {
            return Err(Broken { invariant: "P3", at });
        }
        Ok(())
    }
}
