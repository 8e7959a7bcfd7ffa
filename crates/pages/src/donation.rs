//! Large spans: whole hugepages, and a tail whose slack the filler gets.
//!
//! **From.** TEMERAIRE §4.1, Figure 8; §4.5: a region pays once slack outweighs its possible spans.

use crate::region::Regions;
use crate::tracker::{Place, Trackers};
use core::marker::PhantomData;
use craton_base::{Geometry, HugePageId, HugePages, PageRange};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Large {
    pub(crate) first: HugePageId,
    pub(crate) whole: HugePages,
    /// Pages behind the whole hugepages.
    pub(crate) tail: u32,
}

impl Large {
    pub(crate) fn of<G: Geometry>(span: PageRange) -> Self {
        let (whole, tail) = (HugePages(span.len.0 / G::PAGES), span.len.0 % G::PAGES);
        Self { first: G::hugepage(span.first), whole, tail }
    }

    pub(crate) fn last(self) -> HugePageId {
        HugePageId(self.first.0 + self.whole.0)
    }

    pub(crate) fn end(self) -> HugePageId {
        HugePageId(self.last().0 + u32::from(self.tail > 0))
    }
}

/// Whether they are zero.
pub(crate) fn occupy_whole<G: Geometry>(
    trackers: &mut Trackers<G>,
    first: HugePageId,
    len: HugePages,
    begins: bool,
) -> bool {
    let mut zeroed = true;
    for i in first.0..first.0 + len.0 {
        let t = &mut trackers[i as usize];
        t.reset();
        t.place = Place::Large;
        zeroed &= match begins && i == first.0 {
            true => t.occupy(0, G::PAGES),
            false => t.carry(0, G::PAGES),
        };
    }
    zeroed
}

/// Whether it is zero.
pub(crate) fn leave_tail<G: Geometry>(trackers: &mut Trackers<G>, id: HugePageId, tail: u32, begins: bool) -> bool {
    let t = &mut trackers[id.0 as usize];
    t.reset();
    t.donated = true;
    if begins { t.occupy(0, tail) } else { t.carry(0, tail) }
}

pub(crate) struct Donation<G> {
    /// They always go to the filler.
    small: u32,
    geometry: PhantomData<G>,
}

impl<G: Geometry> Donation<G> {
    pub(crate) const NONE: Self = Self { small: 0, geometry: PhantomData };

    pub(crate) fn count(&mut self, old: u32, new: u32) {
        let small = |pages: u32| if pages <= G::PAGES / 2 { pages } else { 0 };
        self.small = self.small - small(old) + small(new);
    }

    /// By the spans that could fill it, and large enough for a region (§4.5).
    pub(crate) fn is_outweighed(&self, slack: u32) -> bool {
        slack >= self.small && slack >= Regions::<G>::LEAST_SLACK
    }
}

#[cfg(test)]
mod tests;
