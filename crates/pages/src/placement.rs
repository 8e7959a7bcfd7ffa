//! Places spans of up to half a hugepage: by the filler's lists (§4.4), or page frames.

use crate::filler::Filler;
use crate::fit::{Fit, Found};
use crate::tracker::{Tracker, Trackers};
use craton_base::{Density, Geometry, HugePageId, PageBits};

#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub(crate) pages: u32,
    pub(crate) align: u32,
    pub(crate) density: Density,
}

/// All methods but `choose` are notifications.
pub trait Placement: sealed::Placement {}
impl<T: sealed::Placement> Placement for T {}

pub(crate) mod sealed {
    use super::*;

    pub trait Placement {
        const BY_LISTS: Self;

        /// The calls below do nothing then.
        fn is_by_lists(&self) -> bool;

        fn choose<P: Fit, G: Geometry>(&mut self, filler: &Filler<P, G>, trackers: &Trackers<G>, span: Wanted)
        -> Found;

        fn placed(&mut self, id: HugePageId, at: u32, pages: u32);

        fn adopt<G: Geometry>(&mut self, id: HugePageId, t: &Tracker<G>);

        fn expel<G: Geometry>(&mut self, id: HugePageId, t: &Tracker<G>);

        fn follow<G: Geometry>(&mut self, id: HugePageId, old: &PageBits<G>, t: &Tracker<G>);
    }
}

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

    fn placed(&mut self, _: HugePageId, _: u32, _: u32) {}
    fn adopt<G: Geometry>(&mut self, _: HugePageId, _: &Tracker<G>) {}
    fn expel<G: Geometry>(&mut self, _: HugePageId, _: &Tracker<G>) {}
    fn follow<G: Geometry>(&mut self, _: HugePageId, _: &PageBits<G>, _: &Tracker<G>) {}
}
