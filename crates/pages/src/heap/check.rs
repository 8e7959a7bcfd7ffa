//! Walks every invariant of the page heap.

use super::Temeraire;
use crate::filler::{Family, Filler};
use crate::fit::Fit;
use crate::lists::{LISTS, Sums};
use crate::placement::Placement;
use crate::region::{self, Held};
use crate::tracker::{Place, Tracker};
use craton_base::{Clock, Floor, Geometry, HugePageId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    pub invariant: &'static str,
    pub at: HugePageId,
}

#[derive(Default)]
struct Counts {
    places: [u32; 6],
    used: u32,
    guarded: u32,
    cached: u32,
    regions: Held,
}

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    /// P1 to P9; linear in the granted hugepages.
    pub fn check(&self) -> Result<(), Broken> {
        let mut counts = Counts::default();
        for i in 0..self.granted().0 {
            let at = HugePageId(i);
            let t = &self.trackers[i as usize];
            counts.places[t.place as usize] += 1;
            counts.used += t.used_pages();
            counts.guarded += u32::from(t.guarded);
            match t.place {
                Place::Region => counts.regions.add(Held::of(t)),
                Place::Cached => counts.cached += t.backed_pages(),
                _ => {}
            }
            if let Some(invariant) = self.tracker_fault(at, t).or_else(|| self.place_fault(at, t)) {
                return Err(Broken { invariant, at });
            }
        }
        self.check_sums(&counts)
    }

    /// P2, P5, P6.
    fn tracker_fault(&self, at: HugePageId, t: &Tracker<G>) -> Option<&'static str> {
        let continues = u32::from(t.continues());
        let previous_reaches = at.0 > 0 && self.trackers[at.0 as usize - 1].used().contains(G::PAGES - 1);
        let counted = t.used().len() == t.used_pages()
            && t.used().longest_clear(G::PAGES) == t.longest_free()
            && t.starts().minus(t.used()).is_empty()
            && t.starts().len() + continues == t.allocs()
            && (continues == 0 || previous_reaches);
        match () {
            () if !counted => Some("P2"),
            () if !t.is_touched_right() => Some("P5"),
            () if t.place == Place::Unbacked && t.backed_pages() > 0 => Some("P6"),
            () => None,
        }
    }

    /// P1, P3, P4, P8.
    fn place_fault(&self, at: HugePageId, t: &Tracker<G>) -> Option<&'static str> {
        let previous = at.0.checked_sub(1).map(|p| self.trackers[p as usize].place);
        let unlisted = t.list == 0 && !t.broken && !t.donated && !t.guarded;
        let fits = match t.place {
            Place::Beyond => false,
            Place::Unbacked | Place::Cached => {
                if previous != Some(t.place) && !self.is_range(at, t.run, t.place) {
                    return Some("P4");
                }
                t.used_pages() == 0 && unlisted
            }
            Place::Filler if !Filler::<P, G>::is_listed_right(t) => return Some("P3"),
            Place::Filler if t.guarded && !t.broken => return Some("P9"),
            Place::Filler => (t.used_pages() > 0 || t.collapsing) && !(t.dense && t.donated) && !(t.broken && t.intact),
            Place::Large => t.used_pages() == G::PAGES && t.allocs() == 1 && unlisted,
            Place::Region => {
                let head = region::head_of::<G>(at);
                let whole = (head.0..head.0 + G::REGION).all(|i| self.trackers[i as usize].place == Place::Region);
                if whole && at == head {
                    let listed = self.regions.is_listed(&self.trackers, head);
                    if t.run != region::longest(&self.trackers, head) || !listed {
                        return Some("P8");
                    }
                }
                whole && unlisted
            }
        };
        (!fits).then_some("P1")
    }

    fn is_range(&self, first: HugePageId, len: u32, place: Place) -> bool {
        let end = first.0 + len;
        len > 0
            && end <= self.granted().0
            && (first.0..end).all(|i| self.trackers[i as usize].place == place)
            && self.trackers[end as usize - 1].run == len
            && (end == self.granted().0 || self.trackers[end as usize].place != place)
    }

    /// P1, P3, P7, P8, P9.
    fn check_sums(&self, counts: &Counts) -> Result<(), Broken> {
        let at = HugePageId(self.granted().0);
        let fail = |invariant| Err(Broken { invariant, at });
        let placed = |place: Place| counts.places[place as usize];
        let places = self.cache.below().free().total().0 == placed(Place::Unbacked)
            && self.cache.total().0 == placed(Place::Cached)
            && self.filler.len() == placed(Place::Filler)
            && counts.used == self.in_use().0;
        if !places {
            return fail("P1");
        }
        if counts.regions != self.regions.held() {
            return fail("P8");
        }
        if (counts.cached, 0) != (self.cache.backed().0, self.cache.below().free().backed().0) {
            return fail("P7");
        }
        if counts.guarded != self.backing.guarded().0 {
            return fail("P9");
        }
        let mut listed = 0;
        for family in Family::ALL {
            let (lists, mut sums) = (self.filler.lists(family), Sums::default());
            for list in 0..LISTS {
                for id in lists.walk(&self.trackers, list) {
                    let t = &self.trackers[id.0 as usize];
                    if t.place != Place::Filler || t.family != family || t.list as usize != list + 1 {
                        return Err(Broken { invariant: "P3", at: id });
                    }
                    listed += 1;
                    sums.replace(Sums::default(), Sums::of(t));
                }
            }
            if sums != lists.sums {
                return fail("P7");
            }
        }
        if listed == self.filler.len() { Ok(()) } else { fail("P3") }
    }
}
