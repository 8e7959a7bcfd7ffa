//! Statistics of the page heap.

use super::Temeraire;
use crate::fit::Fit;
use crate::placement::Placement;
use crate::tracker::Place;
use craton_base::{Clock, Floor, Geometry, HugePages, Pages};

/// Counts of a page heap. Backed pages as far as known: those handed out since their last
/// unbacking, and all of an intact hugepage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageHeapStats {
    /// Hugepages that the floor granted.
    pub granted: HugePages,
    /// Pages in spans.
    pub in_use: Pages,
    /// Of these, on dense hugepages.
    pub dense: Pages,
    /// Backed pages, in spans or free.
    pub backed: Pages,
    /// Of these, on hugepages that the system backs whole.
    pub intact: Pages,
    /// Free backed pages on whole free hugepages.
    pub cached: Pages,
    /// Free backed pages between spans.
    pub free_backed: Pages,
    /// Free pages behind large spans' tails.
    pub slack: Pages,
    /// Hugepages of the filler.
    pub filler: HugePages,
    /// Hugepages of regions.
    pub region: HugePages,
    /// Hugepages that are partly unbacked.
    pub broken: HugePages,
    /// Free hugepages that may stay backed now.
    pub cache_limit: HugePages,
    /// Pages returned to the system since the start.
    pub released_total: u64,
}

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    pub(super) fn granted(&self) -> HugePages {
        self.cache.below().granted()
    }

    pub(super) fn capacity(&self) -> HugePages {
        self.cache.below().capacity()
    }

    pub(super) fn in_use(&self) -> Pages {
        Pages(self.in_use)
    }

    pub(super) fn free_backed(&self) -> Pages {
        let (sums, regions) = (self.filler.sums(), self.regions.held());
        Pages(self.cache.backed().0 + regions.idle_pages + regions.between + (sums.backed - sums.used))
    }

    pub(super) fn free_backed_hugepages(&self) -> HugePages {
        HugePages(self.cache.total().0 + self.regions.held().idle_backed)
    }

    pub(super) fn backed_pages(&self) -> Pages {
        Pages(self.in_use + self.free_backed().0)
    }

    pub(super) fn backed(&self) -> HugePages {
        HugePages(self.in_demand().0 + self.free_backed_hugepages().0)
    }

    pub(super) fn cache_limit(&self) -> HugePages {
        self.cache.limit.limit()
    }

    /// Counts by a walk over all granted hugepages.
    pub fn stats(&self) -> PageHeapStats {
        let mut s = PageHeapStats {
            granted: self.granted(),
            slack: Pages(self.filler.slack()),
            filler: HugePages(self.filler.len()),
            cache_limit: self.cache_limit(),
            released_total: self.release.total(),
            ..PageHeapStats::default()
        };
        for i in 0..self.granted().0 as usize {
            let t = &self.trackers[i];
            let (used, backed) = (t.used_pages(), t.backed_pages());
            s.in_use.0 += used;
            s.backed.0 += backed;
            s.intact.0 += if t.intact { G::PAGES } else { 0 };
            s.dense.0 += if t.dense { used } else { 0 };
            s.region.0 += u32::from(t.place == Place::Region);
            s.broken.0 += u32::from(t.broken);
            if used == 0 {
                s.cached.0 += backed;
            } else {
                s.free_backed.0 += backed - used;
            }
        }
        s
    }
}
