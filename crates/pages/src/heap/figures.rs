//! Statistics of the page heap.

use super::Temeraire;
use crate::filler::Family;
use crate::fit::Fit;
use crate::placement::Placement;
use crate::tracker::Place;
use craton_base::{Clock, Floor, Geometry, HugePageId, HugePages, Pages};

/// Backed: handed out since the last unbacking, and all of an intact hugepage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageHeapStats {
    pub granted: HugePages,
    pub in_use: Pages,
    /// In spans on dense hugepages.
    pub dense: Pages,
    /// In spans or free.
    pub backed: Pages,
    /// On hugepages that the system backs whole.
    pub intact: Pages,
    /// On whole free hugepages.
    pub cached: Pages,
    /// Between spans.
    pub free_backed: Pages,
    /// Behind large spans' tails.
    pub slack: Pages,
    pub filler: HugePages,
    pub region: HugePages,
    /// Partly unbacked.
    pub broken: HugePages,
    pub cache_limit: HugePages,
    /// Pages, since the start.
    pub released_total: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Component {
    /// In spans.
    pub used: Pages,
    /// Free and backed.
    pub free: Pages,
}

/// TEMERAIRE §4, Figure 7, from maintained sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Components {
    /// For spans of many small objects.
    pub dense: Component,
    pub sparse: Component,
    /// Backed ones are among the sparse free ones.
    pub slack: Pages,
    pub cached: Pages,
    pub region_free: Pages,
}

/// A walk's sums. With the filler's, its used pages are those in spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    pub region_used: Pages,
    pub large: HugePages,
    pub intact: HugePages,
    pub broken: HugePages,
    pub left_small: HugePages,
    next: HugePageId,
}

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    pub fn components(&self) -> Components {
        let (all, regions) = (self.filler.sums(), self.regions.held());
        let (mut used, mut backed) = (0, 0);
        for family in [Family::Dense, Family::DenseBroken] {
            let sums = self.filler.lists(family).sums;
            (used, backed) = (used + sums.used, backed + sums.backed);
        }
        let part = |used, backed| Component { used: Pages(used), free: Pages(backed - used) };
        Components {
            dense: part(used, backed),
            sparse: part(all.used - used, all.backed - backed),
            slack: Pages(self.filler.slack()),
            cached: self.cache.backed(),
            region_free: Pages(regions.idle_pages + regions.between),
        }
    }

    /// `true`: there are more. The caller may release the lock between calls.
    pub fn count_hugepages(&self, census: &mut Census, most: HugePages) -> bool {
        let end = census.next.0.saturating_add(most.0).min(self.granted().0);
        for i in census.next.0..end {
            let t = &self.trackers[i as usize];
            match t.place {
                Place::Region => census.region_used.0 += t.used_pages(),
                Place::Large => census.large.0 += 1,
                _ => {}
            }
            census.intact.0 += u32::from(t.intact);
            census.broken.0 += u32::from(t.broken && t.used_pages() > 0);
            census.left_small.0 += u32::from(t.is_small() && t.used_pages() > 0);
        }
        census.next = HugePageId(end.max(census.next.0));
        census.next.0 < self.granted().0
    }

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

    /// By a walk.
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
