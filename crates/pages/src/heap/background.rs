//! Background work: release, backing, collapses. A caller may release the heap's lock between a
//! tick's steps, and a collapse's parts.

use super::Temeraire;
use crate::backing::{HugeBacking, Use};
use crate::collapse::{Candidate, Search, Took};
use crate::filler::Filler;
use crate::fit::Fit;
use crate::growth::SLOW_NS;
use crate::huge_cache::HugeCache;
use crate::placement::Placement;
use crate::region::Regions;
use crate::release::{Breaking, Release, STEP, Tick, TooMuch};
use crate::tracker::{Place, Tracker, Trackers};
use craton_base::{Advice, Clock, CollapseError, Floor, Geometry, HugePageId, HugePages, NoMemory, PageRange, Pages};

impl<F: Floor, C: Clock, P: Fit, K: Placement, G: Geometry> Temeraire<F, C, P, K, G> {
    pub(super) fn tick(&mut self) -> Tick {
        let mut all = Tick::default();
        loop {
            let step = self.tick_step();
            all.released += step.released;
            if !step.more {
                return Tick { collapsed: self.collapse_round(), ..all };
            }
        }
    }

    pub(super) fn tick_step(&mut self) -> Tick {
        let now = self.clock.now_ns();
        self.demand.fold(self.in_use, now);
        self.record_demand();
        self.growth.tick(self.in_use, now);
        let unseen = self.check_backing();
        let mut released = self.shrink_to_limit();
        let surplus = self.releasable(Breaking::Surplus);
        let due = self.release.due(now, surplus);
        let mut more = unseen;
        if due.0 > 0 {
            let pages = due.min(surplus);
            let paced = self.release_some(pages.min(STEP), Breaking::Surplus);
            self.release.paced(paced);
            released += paced;
            // Where the system refuses, the next tick retries.
            more |= pages > STEP && paced >= u64::from(STEP.0);
        }
        Tick { released, collapsed: 0, more }
    }

    pub(super) fn releasable(&mut self, breaking: Breaking) -> Pages {
        let free = self.free_backed();
        match breaking {
            Breaking::Never => Pages(self.cache.backed().0 + self.regions.held().idle_pages),
            Breaking::Always => free,
            Breaking::Surplus => {
                let now = self.clock.now_ns();
                self.demand.fold(self.in_use, now);
                Release::surplus(Pages(self.in_use), free, Pages(self.demand.wanted(now)))
            }
        }
    }

    pub(super) fn release(&mut self, pages: Pages, breaking: Breaking) -> Result<u64, TooMuch> {
        let there = self.releasable(breaking);
        if pages > there {
            return Err(TooMuch { asked: pages, there });
        }
        Ok(self.release_some(pages, breaking))
    }

    pub(super) fn release_all(&mut self, breaking: Breaking) -> u64 {
        let there = self.releasable(breaking);
        self.release_some(there, breaking)
    }

    /// Whole hugepages, then the filler's, then regions.
    fn release_some(&mut self, pages: Pages, breaking: Breaking) -> u64 {
        let (want, mut done) = (u64::from(pages.0), 0);
        // A free hugepage may be partly backed.
        while done < want {
            let more = G::hugepages_up(Pages(pages.0 - done as u32));
            match self.shrink(more.min(self.free_backed_hugepages())) {
                0 => break,
                pages => done += pages,
            }
        }
        if breaking == Breaking::Never {
            return done;
        }
        let (trackers, floor) = (&mut self.trackers, &mut self.floor);
        if done < want {
            let broken = self.filler.release(trackers, floor, &mut self.backing, want - done);
            done += self.release.count(broken);
        }
        if done < want {
            let broken = self.regions.break_up(trackers, floor, self.cache.below().granted(), want - done);
            done += self.release.count(broken);
        }
        done
    }

    /// Returns pages.
    pub(super) fn shrink_to_limit(&mut self) -> u64 {
        let excess = self.free_backed_hugepages().0.saturating_sub(self.cache_limit().0);
        self.shrink(HugePages(excess))
    }

    /// Regions' first; returns pages.
    pub(super) fn shrink(&mut self, want: HugePages) -> u64 {
        if want.0 == 0 {
            return 0;
        }
        let (done, pages) = self.regions.shrink(&mut self.trackers, &mut self.floor, want.0);
        let left = HugePages(want.0 - done);
        let lost = self.cache.release(&mut self.trackers, &mut self.floor, left);
        self.release.count(pages + lost)
    }

    pub(super) fn set_backing(&mut self, backing: HugeBacking) {
        let granted = self.granted();
        self.backing.set(&mut self.trackers, &mut self.floor, granted, backing);
    }

    /// Past the threshold, or for growth or a collapse; not where broken.
    pub fn is_requested(&self, id: HugePageId) -> bool {
        self.backing.is_requested(id, &self.trackers[id.0 as usize])
    }

    pub(super) fn advise_span(&mut self, span: PageRange, advice: Advice) {
        for id in whole_hugepages::<G>(span) {
            if self.backing.usual(id, &self.trackers[id.0 as usize]) != advice {
                self.floor.advise(G::range(id), advice);
            }
            if advice == Advice::Small {
                self.trackers[id.0 as usize].intact = false;
            }
        }
    }

    pub(super) fn unadvise_span(&mut self, span: PageRange, advice: Advice) {
        for id in whole_hugepages::<G>(span) {
            let usual = self.backing.usual(id, &self.trackers[id.0 as usize]);
            if usual != advice {
                self.floor.advise(G::range(id), usual);
            }
        }
    }

    /// `true`: the tick has more to check.
    fn check_backing(&mut self) -> bool {
        let granted = self.granted();
        let (filler, regions, cache) = (&mut self.filler, &mut self.regions, &mut self.cache);
        let in_parts = |trackers: &mut Trackers<G>, id, resident| {
            reback(trackers, filler, regions, cache, id, |t| t.came_in_parts(resident));
        };
        if self.backing.verify_some(&mut self.trackers, &mut self.floor, granted, in_parts) {
            self.collapse.hope();
        }
        self.backing.has_more(granted)
    }

    fn reback(&mut self, id: HugePageId, change: impl FnOnce(&mut Tracker<G>)) {
        reback(&mut self.trackers, &mut self.filler, &mut self.regions, &mut self.cache, id, change);
    }

    fn collapse_round(&mut self) -> u32 {
        if !self.collapse.is_due() {
            return 0;
        }
        let mut collapsed = 0;
        // Each granted hugepage once: time may stand still.
        for _ in 0..self.granted().0 {
            let Some(id) = self.begin_collapse() else { break };
            let start = self.clock.now_ns();
            let result = self.floor.collapse(G::range(id));
            let took = Took::busy(self.clock.now_ns() - start);
            collapsed += u32::from(result.is_ok());
            if !self.end_collapse(id, result, took) {
                break;
            }
        }
        collapsed
    }

    pub(super) fn begin_collapse(&mut self) -> Option<HugePageId> {
        let hopeless = self.backing.is_in_vain() || self.collapse.is_hopeless();
        if hopeless || self.in_demand().0 <= self.backing.wanted().from.0 {
            return None;
        }
        let granted = self.granted();
        let mut search = Search::new(granted);
        loop {
            match self.collapse.next(&mut search, &self.trackers, &self.floor, granted)? {
                Candidate::Dense(id) => {
                    self.backing.begin_collapse(&mut self.trackers, &mut self.floor, id);
                    return Some(id);
                }
                Candidate::Whole(id) => {
                    self.reback(id, |t| {
                        t.intact = true;
                        t.broken = false;
                    });
                    self.backing.unguard(&mut self.trackers, &mut self.floor, id, HugePages(1));
                }
            }
        }
    }

    pub fn is_paused(&self) -> bool {
        self.growth.is_paused()
    }

    /// In any order: the filler prefers refilled ones.
    pub(super) fn begin_refill(&mut self) -> Option<HugePageId> {
        let due = self.growth.refill_due(self.in_use);
        if due == Pages(0) {
            return None;
        }
        let may = !self.growth.is_paused() && !self.backing.is_in_vain() && !self.collapse.is_hopeless();
        let found = may.then(|| self.filler.mostly_unbacked(&self.trackers)).flatten();
        let Some(id) = found else {
            self.growth.end_refills();
            return None;
        };
        let missing = G::PAGES - self.trackers[id.0 as usize].backed_pages();
        self.growth.refilled(Pages(missing));
        self.backing.begin_collapse(&mut self.trackers, &mut self.floor, id);
        Some(id)
    }

    /// Unless one waits in the cache.
    pub(super) fn begin_clear(&mut self) -> Option<HugePageId> {
        let due = self.growth.clears() && self.free_backed_hugepages() == HugePages(0);
        self.growth.end_clears();
        if !due || self.growth.is_paused() || self.cache_limit() == HugePages(0) {
            return None;
        }
        let (granted, one) = (self.granted(), HugePages(1));
        let taken = self.cache.alloc_unbacked(&mut self.trackers, &mut self.floor, one, one);
        self.follow_grant(granted);
        let (id, demand) = (taken.ok()?, self.in_demand());
        let slabs = Use { pages: Pages(1), fills_up: true, later: false };
        self.backing.advise_span(&mut self.trackers, &mut self.floor, (id, one), slabs, demand);
        let t = &mut self.trackers[id.0 as usize];
        if t.collapsing || !self.backing.will_be_huge(id, t) {
            self.cache.put_unbacked(&mut self.trackers, id, one);
            return None;
        }
        t.reset();
        t.intact = true;
        self.cache.put(&mut self.trackers, id, one);
        Some(id)
    }

    pub(super) fn end_clear(&mut self, id: HugePageId, result: Result<(), NoMemory>, took: Took) {
        if took.processor_ns >= SLOW_NS {
            self.growth.pause(self.clock.now_ns());
        }
        let one = HugePages(1);
        match self.trackers[id.0 as usize].place {
            Place::Cached if result.is_err() => {
                self.cache.alloc_at(&mut self.trackers, id, one);
                let _ = self.floor.unback(G::range(id));
                self.trackers[id.0 as usize].unbacked();
                self.cache.put_unbacked(&mut self.trackers, id, one);
            }
            // Released meanwhile.
            Place::Unbacked => _ = self.floor.unback(G::range(id)),
            _ => {}
        }
    }

    pub(super) fn end_collapse(&mut self, id: HugePageId, result: Result<(), CollapseError>, took: Took) -> bool {
        if id >= HugePageId(self.granted().0) || !self.trackers[id.0 as usize].collapsing {
            return false;
        }
        let well = self.collapse.record(result, took);
        let done = result.is_ok();
        if !done {
            self.growth.end_refills();
        }
        if result == Err(CollapseError::NoMemory) || took.processor_ns >= SLOW_NS {
            self.growth.pause(self.clock.now_ns());
        }
        let t = &mut self.trackers[id.0 as usize];
        t.collapsing = false;
        let lost_memory = t.place == Place::Unbacked;
        if lost_memory && done {
            self.cache.alloc_at(&mut self.trackers, id, HugePages(1));
            self.trackers[id.0 as usize].intact = true;
            self.put(id, HugePages(1));
        } else if !lost_memory {
            self.reback(id, |t| {
                t.intact |= done;
                t.broken &= !done;
            });
        }
        self.backing.end_collapse(&mut self.trackers, &mut self.floor, id);
        // Its last span was freed meanwhile.
        let t = &self.trackers[id.0 as usize];
        if t.place == Place::Filler && t.used_pages() == 0 {
            self.retire(id);
        }
        well
    }
}

fn reback<P: Fit, G: Geometry>(
    trackers: &mut Trackers<G>,
    filler: &mut Filler<P, G>,
    regions: &mut Regions<G>,
    cache: &mut HugeCache<G>,
    id: HugePageId,
    change: impl FnOnce(&mut Tracker<G>),
) {
    let t = &mut trackers[id.0 as usize];
    match t.place {
        Place::Filler => filler.update(trackers, id, change),
        Place::Region => regions.change(t, change),
        Place::Cached => cache.update(t, change),
        Place::Large | Place::Unbacked | Place::Beyond => change(t),
    }
}

fn whole_hugepages<G: Geometry>(span: PageRange) -> impl Iterator<Item = HugePageId> {
    (span.first.0.div_ceil(G::PAGES)..span.end().0 / G::PAGES).map(HugePageId)
}
