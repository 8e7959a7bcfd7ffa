//! A page heap in simulated memory and time. All pages of spans are written; hugepages come by
//! advice, as by default.

use craton_base::{Density, HUGEPAGE_SIZE, HugePages, PAGE_SHIFT, PageRange, Pages, SpanSource, Table};
use craton_pages::{Fit, HugeBacking, LongestFreeFirst, PageHeap, PageHeapExt, Temeraire, Tracker};
use craton_sim::{SimFloor, ThpMode, VirtualClock};

pub const SECOND_NS: u64 = 1_000_000_000;

pub struct World<P: Fit = LongestFreeFirst> {
    pub heap: Temeraire<SimFloor, VirtualClock, P>,
    floor: SimFloor,
    clock: VirtualClock,
    now_ns: u64,
    next_tick_ns: u64,
}

/// In bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    pub used: u64,
    /// By the simulated system.
    pub backed: u64,
    pub huge: u64,
    /// That may be kept as whole hugepages.
    pub limit: u64,
}

impl<P: Fit> World<P> {
    /// Leaks the heap's trackers.
    pub fn new(region_bytes: u64) -> Self {
        let capacity = HugePages(region_bytes.div_ceil(HUGEPAGE_SIZE as u64) as u32);
        let (floor, clock) = (SimFloor::new(capacity, ThpMode::Madvise), VirtualClock::new(0));
        let trackers: Vec<Tracker> = (0..capacity.0).map(|_| Tracker::default()).collect();
        let table = Table::from_slice(trackers.leak());
        let heap = Temeraire::new(floor.clone(), clock.clone(), table, capacity, HugeBacking::AUTO);
        Self { heap, floor, clock, now_ns: 0, next_tick_ns: SECOND_NS }
    }

    pub fn alloc(&mut self, pages: Pages, density: Density) -> Result<PageRange, String> {
        let span = self.heap.alloc(pages, Pages(1), density).map_err(|e| {
            let (granted, used) = (self.heap.granted().bytes().0 >> 20, self.heap.in_use().bytes().0 >> 20);
            format!(
                "a span of {} pages with {used} MiB in spans and {granted} MiB granted: {e}; simulate less memory",
                pages.0
            )
        })?;
        self.floor.touch(span.range);
        Ok(span.range)
    }

    /// # Panics
    /// It is not allocated.
    pub fn free(&mut self, span: PageRange, density: Density) {
        self.heap.free(span, density).expect("the span is out");
    }

    pub fn pass_until(&mut self, ns: u64) {
        while self.next_tick_ns <= ns {
            self.clock.advance(self.next_tick_ns.saturating_sub(self.now_ns));
            self.now_ns = self.now_ns.max(self.next_tick_ns);
            self.heap.tick();
            self.next_tick_ns += SECOND_NS;
        }
        self.clock.advance(ns.saturating_sub(self.now_ns));
        self.now_ns = self.now_ns.max(ns);
    }

    pub fn state(&self) -> State {
        State {
            used: u64::from(self.heap.in_use().0) << PAGE_SHIFT,
            backed: self.floor.backed_bytes().0 as u64,
            huge: self.floor.huge_bytes().0 as u64,
            limit: self.heap.figures().cache_limit.bytes().0 as u64,
        }
    }

    pub fn system_calls(&self) -> u64 {
        let calls = self.floor.calls();
        calls.reserve + calls.back + calls.unback + calls.collapse + calls.advise
    }
}

#[cfg(test)]
mod tests;
