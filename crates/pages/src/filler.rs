//! Packs spans of less than a hugepage onto as few hugepages as possible: the lists, and who is on them.
//!
//! **From.** TEMERAIRE §4.4. Which hugepage of a family is taken says [`crate::fit`]. Families keep apart what should not mix:
//! spans of many small objects, whose last one lives long (dense), from others (sparse); hugepages whose tail a large span
//! donated come after these (§4.1), those that lost part of their memory last (§4.6). When a program's objects change in kind,
//! the hugepages of the old kind stand half empty and those of the new kind grow: then they are shared.
//!
//! **Invariants.** P3: a hugepage of the filler is on the list that its numbers name; P7: the sums of used and of backed pages
//! are those of its hugepages.

use crate::fit::{Fit, Found, dense};
use crate::frames::Frames;
use crate::lists::{LISTS, Lists, Sums};
use crate::tracker::{Place, Tracker};
use core::marker::PhantomData;
use craton_base::{Density, FrameSource, HugePageId, PAGES_PER_HUGEPAGE, Table};

/// The families.
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

/// A family with more free pages than one for so many used ones is hollow, and so is one with any while it is so small that a hugepage
/// more for the other kind, partly used, weighs more: 64 MiB.
const HOLLOW_PART: u32 = 8;
const SMALL_FAMILY: u32 = 32;

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

pub(crate) struct Filler<P, S> {
    families: [Lists; FAMILIES],
    policy: PhantomData<P>,
    /// Who says where spans go, if not the lists.
    frames: Option<Frames<S>>,
}

impl<P: Fit, S: FrameSource> Filler<P, S> {
    pub(crate) const EMPTY: Self =
        Self { families: [const { Lists::EMPTY }; FAMILIES], policy: PhantomData, frames: None };

    /// Lets page frames say where spans go, before there are any.
    pub(crate) fn set_frames(&mut self, source: S) {
        self.frames = Some(Frames::new(source));
    }

    /// Whether page frames say where spans go.
    pub(crate) fn has_frames(&self) -> bool {
        self.frames.is_some()
    }

    /// What the hugepages of all families amount to.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.families.iter().for_each(|lists| sums.replace(Sums::default(), lists.sums));
        sums
    }

    /// Free pages behind the tails of large spans, in hugepages that are whole.
    pub(crate) fn slack(&self) -> u32 {
        let donated = self.lists(Family::Donated);
        donated.len() * PAGES_PER_HUGEPAGE - donated.sums.used
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

    /// The place for a span that is about to be put there. Where frames say where, they are taken: blocks of 2^k pages as they say, others in
    /// the gap that the lists find, and in a block where there is none.
    pub(crate) fn choose(&mut self, trackers: &Table<Tracker>, pages: u32, align: u32, density: Density) -> Found {
        if self.frames.is_none() {
            return self.find(trackers, pages, align, density);
        }
        let is_block = pages.is_power_of_two();
        let block = if is_block { self.take_block(pages, align, density) } else { None };
        block.or_else(|| {
            let gap = self.find(trackers, pages, align, density);
            self.take_frames(gap, pages);
            if is_block { gap } else { gap.or_else(|| self.take_block(pages, align, density)) }
        })
    }

    fn take_block(&mut self, pages: u32, align: u32, density: Density) -> Found {
        self.frames.as_mut()?.take(pages, align, density)
    }

    /// Takes the frames of a place that the lists have found.
    fn take_frames(&self, found: Found, pages: u32) {
        if let (Some(frames), Some((id, at))) = (&self.frames, found) {
            frames.take_at(id, at, pages);
        }
    }

    fn find_in(&self, family: Family, trackers: &Table<Tracker>, pages: u32, align: u32) -> Found {
        let lists = self.lists(family);
        match family.is_dense() {
            true if pages.max(align) > dense::MAX_PAGES => None,
            true => dense::find(lists, trackers, pages, align),
            false => P::find(lists, trackers, pages, align),
        }
    }

    /// As [`Filler::find`], on hugepages for spans of the other kind, where these stand so empty that to keep the kinds apart would
    /// cost more memory than it can save.
    pub(crate) fn find_in_hollow(&self, trackers: &Table<Tracker>, pages: u32, align: u32, density: Density) -> Found {
        let family = match density {
            Density::Sparse => Family::Dense,
            Density::Dense => Family::Sparse,
        };
        if self.frames.is_some() {
            // They have looked everywhere.
            return None;
        }
        let lists = self.lists(family);
        let free = lists.len() * PAGES_PER_HUGEPAGE - lists.sums.used;
        let least = if lists.len() > SMALL_FAMILY { lists.sums.used / HOLLOW_PART } else { 0 };
        if free <= least { None } else { self.find_in(family, trackers, pages, align) }
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
        let found = families()
            .find_map(|family| self.find_in(*family, trackers, pages, align))
            .or_else(|| families().find_map(walk));
        self.take_frames(found, pages);
        found
    }

    /// Puts a span where [`Filler::choose`] or another of its kind said; says whether it reads as zeros.
    pub(crate) fn occupy(&mut self, trackers: &mut Table<Tracker>, id: HugePageId, at: u32, pages: u32) -> bool {
        self.relist(trackers, id, |t| t.occupy(at, pages))
    }

    /// Takes a hugepage in that has just been given its first pages.
    pub(crate) fn adopt(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        t.place = Place::Filler;
        let (family, rank) = Self::list_of(t);
        if let Some(frames) = &mut self.frames {
            frames.adopt(id, t);
        }
        self.enlist(trackers, id, family, rank);
    }

    /// Gives a hugepage up.
    pub(crate) fn expel(&mut self, trackers: &mut Table<Tracker>, id: HugePageId) {
        let t = &trackers[id.0 as usize];
        if let Some(frames) = &mut self.frames {
            frames.expel(id, t);
        }
        let sums = Sums::of(t);
        self.delist(trackers, id, sums);
    }

    /// Changes a hugepage of the filler, moving it to the list that it then belongs to.
    #[inline]
    pub(crate) fn update<R>(
        &mut self,
        trackers: &mut Table<Tracker>,
        id: HugePageId,
        change: impl FnOnce(&mut Tracker) -> R,
    ) -> R {
        let before = self.frames.as_ref().map(|_| *trackers[id.0 as usize].used());
        let result = self.relist(trackers, id, change);
        if let (Some(frames), Some(before)) = (&mut self.frames, before) {
            frames.follow(id, &before, &trackers[id.0 as usize]);
        }
        result
    }

    /// As [`Filler::update`], where the frames know already.
    #[inline]
    fn relist<R>(
        &mut self,
        trackers: &mut Table<Tracker>,
        id: HugePageId,
        change: impl FnOnce(&mut Tracker) -> R,
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

    fn enlist(&mut self, trackers: &mut Table<Tracker>, id: HugePageId, family: Family, rank: u16) {
        let t = &mut trackers[id.0 as usize];
        (t.family, t.list) = (family, rank + 1);
        let lists = &mut self.families[family as usize];
        lists.sums.replace(Sums::default(), Sums::of(t));
        lists.push(trackers, rank.into(), id);
    }

    /// Takes a hugepage off its list, where it counted for `sums`.
    fn delist(&mut self, trackers: &mut Table<Tracker>, id: HugePageId, sums: Sums) {
        let t = &mut trackers[id.0 as usize];
        let rank = core::mem::take(&mut t.list) - 1;
        let lists = &mut self.families[t.family as usize];
        lists.sums.replace(sums, Sums::default());
        lists.remove(trackers, rank.into(), id);
    }

    /// Whether a hugepage says of itself that it is on the list where it should be.
    pub(crate) fn is_listed_right(t: &Tracker) -> bool {
        Self::list_of(t) == (t.family, t.list.wrapping_sub(1))
    }

    /// The family, and the list of it, that a hugepage should be on (P3).
    #[inline]
    pub(crate) fn list_of(t: &Tracker) -> (Family, u16) {
        let family = Family::of(t);
        let rank = if family.is_dense() {
            dense::rank(t.largest_block(), t.allocs())
        } else {
            P::rank(t.longest_free(), t.allocs())
        };
        (family, rank as u16)
    }
}

const _: () = assert!(LISTS < u16::MAX as usize);
