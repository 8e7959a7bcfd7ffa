//! Packs spans of less than a hugepage onto as few hugepages as possible: the lists, and who is on them.
//!
//! **From.** TEMERAIRE §4.4. Which hugepage of a family is taken says [`crate::fit`]. Families keep apart what should not mix:
//! spans of many small objects, whose last one lives long (dense), from others (sparse); hugepages whose tail a large span
//! donated come after these (§4.1), those that lost part of their memory last (§4.6).
//!
//! **Invariants.** P3: a hugepage of the filler is on the list that its numbers name; P7: the sums of used and of backed pages
//! are those of its hugepages.

use crate::fit::{Fit, Found, dense};
use crate::lists::{LISTS, Lists};
use crate::tracker::{Place, Tracker};
use core::marker::PhantomData;
use craton_base::{Density, HugePageId, PAGES_PER_HUGEPAGE, Table};

/// The families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Sparse = 0,
    Donated,
    SparseBroken,
    Dense,
    DenseBroken,
}

const FAMILIES: usize = 5;

impl Family {
    pub(crate) const ALL: [Self; FAMILIES] =
        [Self::Sparse, Self::Donated, Self::SparseBroken, Self::Dense, Self::DenseBroken];

    /// The families in which a span is put, the best first.
    const fn for_density(density: Density) -> &'static [Self] {
        match density {
            Density::Sparse => &[Self::Sparse, Self::Donated, Self::SparseBroken],
            Density::Dense => &[Self::Dense, Self::DenseBroken],
        }
    }

    /// The families that serve when there is no memory for another hugepage.
    const fn in_need(density: Density) -> &'static [Self] {
        match density {
            Density::Sparse => &[Self::Dense, Self::DenseBroken],
            Density::Dense => &[Self::Sparse, Self::Donated, Self::SparseBroken],
        }
    }

    /// Whether the family's rank is that of dense hugepages.
    const fn is_dense(self) -> bool {
        matches!(self, Self::Dense | Self::DenseBroken)
    }

    /// The family of a hugepage.
    fn of(t: &Tracker) -> Self {
        match (t.dense, t.broken, t.donated) {
            (true, true, _) => Self::DenseBroken,
            (true, false, _) => Self::Dense,
            (false, true, _) => Self::SparseBroken,
            (false, false, true) => Self::Donated,
            (false, false, false) => Self::Sparse,
        }
    }
}

/// What the hugepages of the filler amount to, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    /// In spans.
    pub(crate) used: u32,
    /// With memory.
    pub(crate) backed: u32,
    /// Used ones on dense hugepages.
    pub(crate) dense: u32,
    /// Free ones on donated hugepages.
    pub(crate) slack: u32,
}

impl Sums {
    fn of(t: &Tracker) -> Self {
        let used = t.used_pages();
        Self {
            used,
            backed: t.backed_pages(),
            dense: if t.dense { used } else { 0 },
            slack: if t.donated { PAGES_PER_HUGEPAGE - used } else { 0 },
        }
    }

    pub(crate) fn add(&mut self, t: &Tracker) {
        let more = Self::of(t);
        self.used += more.used;
        self.backed += more.backed;
        self.dense += more.dense;
        self.slack += more.slack;
    }

    fn sub(&mut self, t: &Tracker) {
        let less = Self::of(t);
        self.used -= less.used;
        self.backed -= less.backed;
        self.dense -= less.dense;
        self.slack -= less.slack;
    }
}

pub(crate) struct Filler<P> {
    families: [Lists; FAMILIES],
    sums: Sums,
    policy: PhantomData<P>,
}

impl<P: Fit> Filler<P> {
    pub(crate) const EMPTY: Self = Self {
        families: [const { Lists::EMPTY }; FAMILIES],
        sums: Sums { used: 0, backed: 0, dense: 0, slack: 0 },
        policy: PhantomData,
    };

    pub(crate) fn sums(&self) -> Sums {
        self.sums
    }

    /// Hugepages in the filler.
    pub(crate) fn len(&self) -> u32 {
        self.families.iter().map(Lists::len).sum()
    }

    pub(crate) fn lists(&self, family: Family) -> &Lists {
        &self.families[family as usize]
    }

    /// How a span of so many pages is packed.
    pub(crate) fn packing(pages: u32, align: u32, density: Density) -> Density {
        if pages.max(align) > dense::MAX_PAGES { Density::Sparse } else { density }
    }

    /// A hugepage with room for `pages` at a multiple of `align`, and where in it.
    pub(crate) fn find(&self, trackers: &Table<Tracker>, pages: u32, align: u32, density: Density) -> Found {
        Family::for_density(density).iter().find_map(|family| self.find_in(*family, trackers, pages, align))
    }

    fn find_in(&self, family: Family, trackers: &Table<Tracker>, pages: u32, align: u32) -> Found {
        let lists = self.lists(family);
        match family.is_dense() {
            true if pages.max(align) > dense::MAX_PAGES => None,
            true => dense::find(lists, trackers, pages, align),
            false => P::find(lists, trackers, pages, align),
        }
    }

    /// As [`Filler::find`] when there is no memory for another hugepage: any hugepage that has room, also one for spans of the
    /// other kind, or one that the lists do not show. Walks over all of them if it must.
    #[cold]
    pub(crate) fn find_in_need(&self, trackers: &Table<Tracker>, pages: u32, align: u32, density: Density) -> Found {
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

    /// Takes a hugepage in that has just been given its first pages.
    pub(crate) fn adopt(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        t.place = Place::Filler;
        self.sums.add(t);
        self.enlist(trackers, id);
    }

    /// Gives a hugepage up.
    pub(crate) fn expel(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        self.delist(trackers, id);
        self.sums.sub(&trackers[id.0 as usize]);
    }

    /// Changes a hugepage of the filler, moving it to the list that it then belongs to.
    pub(crate) fn update<R>(
        &mut self,
        trackers: &mut Table<Tracker>,
        id: HugePageId,
        change: impl FnOnce(&mut Tracker) -> R,
    ) -> R {
        let t = &mut trackers[id.0 as usize];
        self.sums.sub(t);
        let result = change(t);
        self.sums.add(t);
        let list = Self::list_of(t);
        if list != t.list {
            self.delist(trackers, id);
            self.enlist(trackers, id);
        }
        result
    }

    fn enlist(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let list = Self::list_of(t);
        t.list = list;
        let at = list as usize - 1;
        self.families[at / LISTS].push(trackers, at % LISTS, id);
    }

    fn delist(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let list = t.list as usize - 1;
        t.list = 0;
        self.families[list / LISTS].remove(trackers, list % LISTS, id);
    }

    /// The list, as its number plus 1, that a hugepage should be on (P3).
    pub(crate) fn list_of(t: &Tracker) -> u16 {
        let family = Family::of(t);
        let rank = if family.is_dense() {
            dense::rank(t.used().largest_clear_block(), t.allocs())
        } else {
            P::rank(t.longest_free(), t.allocs())
        };
        (family as usize * LISTS + rank) as u16 + 1
    }
}

const _: () = assert!(FAMILIES * LISTS < u16::MAX as usize);
