//! The placement of spans of up to half a hugepage: the seam between the two page heaps. TEMERAIRE
//! asks the filler's lists (§4.4), [`crate::frames`] page frames; all else is the same.

use crate::filler::Filler;
use crate::fit::{Fit, Found};
use crate::tracker::{Tracker, Trackers};
use craton_base::{Density, Geometry, HugePageId, PageBits};

/// A short span that needs a place.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub(crate) pages: u32,
    pub(crate) align: u32,
    /// Its packing.
    pub(crate) density: Density,
}

/// Places short spans on the filler's hugepages. All methods but `choose` are notifications.
pub trait Placement: sealed::Placement {}
impl<T: sealed::Placement> Placement for T {}

pub(crate) mod sealed {
    use super::*;

    pub trait Placement {
        /// The lists, as before any grant.
        const BY_LISTS: Self;

        /// Whether the filler's lists place all spans, and the calls below do nothing.
        fn is_by_lists(&self) -> bool;

        /// Takes a place for a span.
        fn choose<P: Fit, G: Geometry>(&mut self, filler: &Filler<P, G>, trackers: &Trackers<G>, span: Wanted)
        -> Found;

        /// The lists placed a span in need.
        fn taken(&mut self, id: HugePageId, at: u32, pages: u32);

        /// A hugepage enters the filler, with its used pages.
        fn adopt<G: Geometry>(&mut self, id: HugePageId, t: &Tracker<G>);

        /// A hugepage leaves the filler.
        fn expel<G: Geometry>(&mut self, id: HugePageId, t: &Tracker<G>);

        /// The used pages of a hugepage changed from `old`.
        fn follow<G: Geometry>(&mut self, id: HugePageId, old: &PageBits<G>, t: &Tracker<G>);
    }
}

/// The filler's lists: TEMERAIRE.
#[derive(Clone, Copy, Debug)]
pub struct ByLists;

impl sealed::Placement for ByLists {
    const BY_LISTS: Self = Self;

    fn is_by_lists(&self) -> bool {
        true
    }

    #[inline]
    fn choose<P: Fit, G: Geometry>(&mut self, filler: &Filler<P, G>, trackers: &Trackers<G>, span: Wanted) -> Found {
        filler.find(trackers, span.pages, span.align, span.density)
    }

    fn taken(&mut self, _: HugePageId, _: u32, _: u32) {}
    fn adopt<G: Geometry>(&mut self, _: HugePageId, _: &Tracker<G>) {}
    fn expel<G: Geometry>(&mut self, _: HugePageId, _: &Tracker<G>) {}
    fn follow<G: Geometry>(&mut self, _: HugePageId, _: &PageBits<G>, _: &Tracker<G>) {}
}
