//! The filler packs spans shorter than a hugepage onto as few hugepages as possible.
//!
//! **From.** TEMERAIRE §4.4. Families separate long-lived spans of many small objects (dense) from
//! others (sparse); hugepages with donated tails come after (§4.1), broken ones last (§4.6).
//! **Invariants.** P3, P7.

use crate::backing::Backing;
use crate::fit::{Fit, Found, dense};
use crate::lists::{LISTS, Lists, Sums};
use crate::tracker::{Place, Tracker, Trackers};
use core::marker::PhantomData;
use craton_base::{Density, Floor, Geometry, HugePageId, HugePages};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub(crate) enum Family {
    #[default]
    Sparse = 0,
    Donated,
    SparseBroken,
    Dense,
    DenseBroken,
}

const FAMILIES: usize = 5;

/// Least part of free pages for the other kind: mixed hugepages cost 4 % of the whole ones on fleet
/// profiles. While small (256 MiB) another partly used hugepage weighs more.
const ROOM_PART: u32 = 8;
const SMALL_FAMILY: u32 = 128;

/// In a family, for a mostly unbacked hugepage.
const MOST_LOOKS: usize = 64;

impl Family {
    pub(crate) const ALL: [Self; FAMILIES] =
        [Self::Sparse, Self::Donated, Self::SparseBroken, Self::Dense, Self::DenseBroken];

    const fn for_density(density: Density) -> &'static [Self] {
        match density {
            Density::Sparse => &[Self::Sparse, Self::Donated, Self::SparseBroken],
            Density::Dense => &[Self::Dense, Self::DenseBroken],
        }
    }

    const fn in_need(density: Density) -> &'static [Self] {
        match density {
            Density::Sparse => &[Self::Dense, Self::DenseBroken],
            Density::Dense => &[Self::Sparse, Self::Donated, Self::SparseBroken],
        }
    }

    const fn is_dense(self) -> bool {
        matches!(self, Self::Dense | Self::DenseBroken)
    }

    fn of<G: Geometry>(t: &Tracker<G>) -> Self {
        match (t.dense, t.broken, t.donated) {
            (true, true, _) => Self::DenseBroken,
            (true, false, _) => Self::Dense,
            (false, true, _) => Self::SparseBroken,
            (false, false, true) => Self::Donated,
            (false, false, false) => Self::Sparse,
        }
    }
}

pub struct Filler<P, G> {
    families: [Lists; FAMILIES],
    policy: PhantomData<(P, G)>,
}

impl<P: Fit, G: Geometry> Filler<P, G> {
    pub(crate) const EMPTY: Self = Self { families: [const { Lists::EMPTY }; FAMILIES], policy: PhantomData };

    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.families.iter().for_each(|lists| sums.replace(Sums::default(), lists.sums));
        sums
    }

    /// Pages behind large spans' tails, on unbroken hugepages.
    pub(crate) fn slack(&self) -> u32 {
        let donated = self.lists(Family::Donated);
        donated.len() * G::PAGES - donated.sums.used
    }

    pub(crate) fn len(&self) -> u32 {
        self.families.iter().map(Lists::len).sum()
    }

    pub(crate) fn lists(&self, family: Family) -> &Lists {
        &self.families[family as usize]
    }

    pub(crate) fn packing(pages: u32, align: u32, density: Density) -> Density {
        if pages.max(align) > dense::MAX_PAGES { Density::Sparse } else { density }
    }

    pub(crate) fn find(&self, trackers: &Trackers<G>, pages: u32, align: u32, density: Density) -> Found {
        Family::for_density(density).iter().find_map(|family| self.find_in(*family, trackers, pages, align))
    }

    fn find_in(&self, family: Family, trackers: &Trackers<G>, pages: u32, align: u32) -> Found {
        let lists = self.lists(family);
        match family.is_dense() {
            true if pages.max(align) > dense::MAX_PAGES => None,
            true => dense::find(lists, trackers, pages, align),
            false => P::find(lists, trackers, pages, align),
        }
    }

    pub(crate) fn find_in_other(&self, trackers: &Trackers<G>, pages: u32, align: u32, density: Density) -> Found {
        let family = match density {
            Density::Sparse => Family::Dense,
            Density::Dense => Family::Sparse,
        };
        let lists = self.lists(family);
        let free = lists.len() * G::PAGES - lists.sums.used;
        let least = if lists.len() > SMALL_FAMILY { lists.sums.used / ROOM_PART } else { 0 };
        if free <= least { None } else { self.find_in(family, trackers, pages, align) }
    }

    /// Any room, of either kind, even by a full walk.
    #[cold]
    pub(crate) fn find_in_need(&self, trackers: &Trackers<G>, pages: u32, align: u32, density: Density) -> Found {
        let families = || Family::for_density(density).iter().chain(Family::in_need(density));
        let walk = |family: &Family| {
            let lists = self.lists(*family);
            (0..LISTS)
                .flat_map(|at| lists.walk(trackers, at))
                .find_map(|id| trackers[id.0 as usize].best_fit(pages, align).map(|place| (id, place)))
        };
        families()
            .find_map(|family| self.find_in(*family, trackers, pages, align))
            .or_else(|| families().find_map(walk))
    }

    pub(crate) fn adopt(&mut self, trackers: &mut Trackers<G>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        t.place = Place::Filler;
        let (family, rank) = Self::list_of(t);
        self.enlist(trackers, id, family, rank);
    }

    pub(crate) fn expel(&mut self, trackers: &mut Trackers<G>, id: HugePageId) {
        let t = &trackers[id.0 as usize];
        let sums = Sums::of(t);
        self.delist(trackers, id, sums);
    }

    /// Moves the tracker to its new list.
    #[inline]
    pub(crate) fn update<R>(
        &mut self,
        trackers: &mut Trackers<G>,
        id: HugePageId,
        change: impl FnOnce(&mut Tracker<G>) -> R,
    ) -> R {
        let t = &mut trackers[id.0 as usize];
        let old = Sums::of(t);
        let result = change(t);
        let (family, rank) = Self::list_of(t);
        if (family, rank + 1) == (t.family, t.list) {
            self.families[family as usize].sums.replace(old, Sums::of(t));
        } else {
            self.delist(trackers, id, old);
            self.enlist(trackers, id, family, rank);
        }
        result
    }

    /// About `want` pages; within a list the emptiest first (§4.6).
    pub(crate) fn release(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        backing: &mut Backing<G>,
        want: u64,
    ) -> u64 {
        let mut done = 0;
        for (family, least) in release_order::<G>() {
            // The last lists are the emptiest.
            let mut to = LISTS;
            while done < want
                && let Some(at) = self.lists(family).last_before(to)
            {
                to = at;
                let mut next = self.lists(family).head(at);
                while let Some(id) = next
                    && done < want
                {
                    let t = &trackers[id.0 as usize];
                    next = t.next.checked_sub(1).map(HugePageId);
                    if t.backed_pages() - t.used_pages() >= least {
                        done += self.break_up(trackers, floor, backing, id);
                    }
                }
            }
        }
        done
    }

    /// Broken, at least half without memory.
    pub(crate) fn mostly_unbacked(&self, trackers: &Trackers<G>) -> Option<HugePageId> {
        let is_empty = |id: &HugePageId| {
            let t = &trackers[id.0 as usize];
            !t.collapsing && t.backed_pages() <= G::PAGES / 2
        };
        [Family::SparseBroken, Family::DenseBroken].iter().find_map(|family| {
            let lists = self.lists(*family);
            let mut to = LISTS;
            let lasts = core::iter::from_fn(|| lists.last_before(to).inspect(|at| to = *at));
            lasts.flat_map(|at| lists.walk(trackers, at)).take(MOST_LOOKS).find(is_empty)
        })
    }

    fn break_up(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        backing: &mut Backing<G>,
        id: HugePageId,
    ) -> u64 {
        let t = &trackers[id.0 as usize];
        let gone = t.free_backed();
        if gone.is_empty() || t.collapsing {
            return 0;
        }
        let was_broken = t.broken;
        if !was_broken {
            backing.guard(trackers, floor, id);
        }
        let mut pages = 0;
        for (at, len) in gone.complement().clear_runs() {
            pages += self.unback(trackers, floor, id, at, len);
        }
        if pages == 0 && !was_broken {
            // The system took none: it stays whole.
            backing.unguard(trackers, floor, id, HugePages(1));
        }
        pages
    }

    pub(crate) fn unback(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        id: HugePageId,
        at: u32,
        len: u32,
    ) -> u64 {
        if trackers[id.0 as usize].collapsing || floor.unback(G::part(id, at, len)).is_err() {
            return 0;
        }
        let lost = self.update(trackers, id, |t| {
            t.broken = true;
            t.unback(at, len)
        });
        u64::from(lost)
    }

    #[inline]
    fn enlist(&mut self, trackers: &mut Trackers<G>, id: HugePageId, family: Family, rank: u16) {
        let t = &mut trackers[id.0 as usize];
        (t.family, t.list) = (family, rank + 1);
        let lists = &mut self.families[family as usize];
        lists.sums.replace(Sums::default(), Sums::of(t));
        lists.push(trackers, rank.into(), id);
    }

    #[inline]
    fn delist(&mut self, trackers: &mut Trackers<G>, id: HugePageId, sums: Sums) {
        let t = &mut trackers[id.0 as usize];
        let rank = core::mem::take(&mut t.list) - 1;
        let lists = &mut self.families[t.family as usize];
        lists.sums.replace(sums, Sums::default());
        lists.remove(trackers, rank.into(), id);
    }

    /// P3.
    pub(crate) fn is_listed_right(t: &Tracker<G>) -> bool {
        Self::list_of(t) == (t.family, t.list.wrapping_sub(1))
    }

    #[inline]
    pub(crate) fn list_of(t: &Tracker<G>) -> (Family, u16) {
        let family = Family::of(t);
        let rank = if family.is_dense() {
            dense::rank(t.largest_block(), t.allocs())
        } else {
            P::rank(t.longest_free(), t.allocs())
        };
        (family, rank as u16)
    }
}

/// Broken, mostly free, then nearly full ones; sparse before dense (§4.6).
fn release_order<G: Geometry>() -> impl Iterator<Item = (Family, u32)> {
    const WHOLE: [Family; 3] = [Family::Sparse, Family::Donated, Family::Dense];
    let broken = [(Family::SparseBroken, 1), (Family::DenseBroken, 1)].into_iter();
    let quarters = [3, 2, 1].map(|n| n * (G::PAGES / 4)).into_iter().chain([1]);
    broken.chain(quarters.flat_map(|least| WHOLE.map(|family| (family, least))))
}

const _: () = assert!(LISTS < u16::MAX as usize);

#[cfg(test)]
mod tests;
