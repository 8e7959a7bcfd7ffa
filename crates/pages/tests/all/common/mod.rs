//! A page heap over simulated memory, beside a naive model.
//!
//! **What.** A [`World`] drives the heap through [`Checked`], writes to every page it gets, and
//! after each step compares the heap with the live spans and the simulated memory.
//! **Unsafe.** Lends the heap its trackers and frees them: exhaustive tests make too many to leak.
//! many to leak.
#![allow(dead_code)] // The fuzz target uses a part.

pub mod frames;
pub mod program;

use craton_base::{
    Advice, CollapseError, Density, Floor, Geometry, Huge2M, HugePageId, HugePages, NoMemory, PageId, PageRange, Pages,
    SpanError, SpanSource, Table,
};
use craton_pages::{
    Breaking, Census, CollapseStats, FrameHeap, HugeBacking, LongestFreeFirst, PageHeap, PageHeapExt, PageHeapStats,
    Took, Tracker,
};
use craton_sim::{Checked, FaultPlan, FaultRule, SimFloor, ThpMode, VirtualClock};
use std::hash::{DefaultHasher, Hash, Hasher};

/// By age, modulo their number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    Alloc {
        pages: u32,
        align: u32,
        dense: bool,
    },
    Free {
        nth: usize,
    },
    Resize {
        nth: usize,
        pages: u32,
    },
    Release {
        pages: u32,
        breaking: Breaking,
    },
    ReleaseAll(Breaking),
    Back(HugeBacking),
    Wait {
        ns: u64,
    },
    Tick,
    Rate {
        bytes_per_s: u64,
    },
    Regions(bool),
    BeginCollapse,
    /// The floor's answer, or this error.
    EndCollapse {
        error: Option<CollapseError>,
        took_ns: u64,
    },
    BeginRefill,
    Clear {
        fails: bool,
    },
    Helped(bool),
    RecordSlow,
    /// Refused for the right reason.
    Misuse {
        page: u32,
        len: u32,
    },
    Refuse(FaultRule),
}

impl Op {
    pub const fn alloc(pages: u32, align: u32) -> Self {
        Self::Alloc { pages, align, dense: false }
    }
}

pub type Heap<G> = FrameHeap<SimFloor<G>, VirtualClock, frames::Frames, LongestFreeFirst, G>;

pub struct World<G: Geometry> {
    pub heap: Checked<Heap<G>>,
    pub sim: SimFloor<G>,
    pub clock: VirtualClock,
    pub faults: FaultPlan,
    rule: FaultRule,
    pub out: Vec<PageRange>,
    pub dense: std::collections::BTreeSet<u32>,
    pub collapsing: Vec<HugePageId>,
    /// Only the heap itself refused.
    pub faultless: bool,
    pub capacity: HugePages,
    trackers: *mut [Tracker<G>],
    zone: Option<&'static frames::Zone>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    stats: PageHeapStats,
    in_use: Pages,
    backed: HugePages,
    guarded: HugePages,
    collapses: CollapseStats,
    resident_bytes: usize,
    written: Pages,
    out: Vec<PageRange>,
}

impl<G: Geometry> World<G> {
    pub fn new(capacity: u32, thp: ThpMode, backing: HugeBacking) -> Self {
        let (capacity, faults, clock) = (HugePages(capacity), FaultPlan::default(), VirtualClock::new(1 << 40));
        let sim = SimFloor::with_faults(capacity, thp, faults.clone());
        let boxed: Box<[Tracker<G>]> = (0..capacity.0).map(|_| Tracker::default()).collect();
        let trackers = Box::into_raw(boxed);
        // SAFETY: a valid slice of zeros, this table's until the world is dropped.
        let table = unsafe { Table::new(trackers.cast::<Tracker<G>>(), capacity.0 as usize) };
        let heap = Heap::new(sim.clone(), clock.clone(), table, capacity, backing);
        Self {
            heap: Checked::new(heap),
            zone: None,
            sim,
            clock,
            faults,
            rule: FaultRule::Never,
            out: Vec::new(),
            dense: Default::default(),
            collapsing: Vec::new(),
            faultless: true,
            capacity,
            trackers,
        }
    }

    fn granted_range(&self) -> PageRange {
        G::run(HugePageId(0), self.sim.granted())
    }

    pub fn snapshot(&self) -> Snapshot {
        let heap = self.heap.inner();
        Snapshot {
            // The cache's limit follows demand.
            stats: PageHeapStats {
                granted: HugePages(0),
                region: HugePages(0),
                cache_limit: HugePages(0),
                ..heap.stats()
            },
            in_use: heap.in_use(),
            backed: heap.backed(),
            guarded: heap.figures().guarded,
            collapses: CollapseStats { collapsed: heap.figures().collapses.collapsed, ..CollapseStats::default() },
            resident_bytes: self.sim.backed_bytes().0,
            written: self.sim.written(self.granted_range()),
            out: self.out.clone(),
        }
    }

    fn density(&self, span: PageRange) -> Density {
        if self.dense.contains(&span.first.0) { Density::Dense } else { Density::Sparse }
    }

    /// A refusal is an answer.
    pub fn step(&mut self, op: Op) -> Result<(), SpanError> {
        let refused = self.faults.refused();
        let result = self.try_step(op);
        self.faultless &= self.faults.refused() == refused;
        result
    }

    fn try_step(&mut self, op: Op) -> Result<(), SpanError> {
        match op {
            Op::Alloc { pages, align, dense } => {
                let density = if dense { Density::Dense } else { Density::Sparse };
                let span = self.heap.alloc(Pages(pages), Pages(align), density)?;
                if dense {
                    self.dense.insert(span.range.first.0);
                }
                self.use_new(span.range, span.zeroed);
                self.out.push(span.range);
            }
            Op::Free { nth } if !self.out.is_empty() => {
                let span = self.out.remove(nth % self.out.len());
                self.assert_kept(span);
                self.heap.free(span, self.density(span)).expect("the span is out");
                self.dense.remove(&span.first.0);
            }
            Op::Resize { nth, pages } if !self.out.is_empty() => {
                let nth = nth % self.out.len();
                let span = self.out[nth];
                if self.density(span) == Density::Dense {
                    return Ok(());
                }
                let zeroed = self.heap.resize(span, Pages(pages))?;
                self.out[nth].len = Pages(pages);
                let more = PageRange::new(span.end(), Pages(pages.saturating_sub(span.len.0)));
                self.use_new(more, zeroed);
            }
            Op::Release { pages, breaking } => {
                let there = self.heap.inner_mut().releasable(breaking);
                let before = self.snapshot();
                let refused = self.sim.calls().refused;
                let all = self.sim.backed_bytes().0 - self.heap.live().bytes().0;
                match breaking {
                    Breaking::Always => assert_eq!(there.bytes().0, all, "every free page can be released"),
                    _ => assert!(there.bytes().0 <= all),
                }
                match self.heap.inner_mut().release(Pages(pages), breaking) {
                    Ok(done) => {
                        assert!(pages <= there.0 && done < u64::from(pages) + u64::from(G::PAGES));
                        if self.sim.calls().refused == refused && self.collapsing.is_empty() {
                            assert!(done >= u64::from(pages), "{done} pages of {pages} were released");
                        }
                        self.assert_released(&before, done)
                    }
                    Err(too_much) => {
                        assert!(pages > there.0 && too_much.there == there, "{too_much}");
                        assert_eq!(self.snapshot(), before);
                    }
                }
            }
            Op::ReleaseAll(breaking) => {
                let before = self.snapshot();
                let done = self.heap.inner_mut().release_all(breaking);
                self.assert_released(&before, done);
            }
            Op::Back(backing) => self.heap.inner_mut().set_backing(backing),
            Op::Wait { ns } => {
                self.clock.advance(ns);
            }
            Op::Tick => {
                let before = self.heap.inner().stats();
                let tick = self.heap.inner_mut().tick();
                let after = self.heap.inner().stats();
                assert_eq!(after.released_total, before.released_total + tick.released);
            }
            Op::Rate { bytes_per_s } => self.heap.inner_mut().set_release_rate(bytes_per_s),
            Op::Regions(allowed) => self.heap.inner_mut().set_regions(allowed),
            Op::BeginCollapse => self.collapsing.extend(self.heap.inner_mut().begin_collapse()),
            Op::BeginRefill => {
                let id = self.heap.inner_mut().begin_refill();
                assert!(id.is_none_or(|id| !self.collapsing.contains(&id)), "nothing else uses it");
                self.collapsing.extend(id);
            }
            Op::Clear { fails } => {
                if let Some(id) = self.heap.inner_mut().begin_clear() {
                    assert_eq!(self.sim.written(G::range(id)), Pages(0), "a hugepage that nobody uses");
                    let result = if fails { Err(NoMemory) } else { self.sim.back(G::range(id)) };
                    self.heap.inner_mut().end_clear(id, result, Took::default());
                }
            }
            Op::Helped(helped) => self.heap.inner_mut().set_helped(helped),
            Op::RecordSlow => self.heap.inner_mut().record_slow(),
            Op::EndCollapse { error, took_ns } if !self.collapsing.is_empty() => {
                let id = self.collapsing.remove(0);
                let result = error.map_or_else(|| self.sim.collapse(G::range(id)), Err);
                self.heap.inner_mut().end_collapse(id, result, Took::busy(took_ns));
            }
            Op::Misuse { page, len } => self.misuse(PageRange::new(PageId(page), Pages(len))),
            Op::Refuse(rule) => {
                self.rule = rule;
                self.faults.set(rule);
            }
            Op::Free { .. } | Op::Resize { .. } | Op::EndCollapse { .. } => {}
        }
        Ok(())
    }

    fn misuse(&mut self, range: PageRange) {
        let (page, granted) = (range.first, G::pages(self.sim.granted()).0);
        let around = self.out.iter().find(|span| span.contains(page));
        let fault = match around {
            Some(span) if *span == range => return,
            _ if page.0 >= granted || range.len.0 > granted - page.0 => SpanError::NeverGiven(page),
            Some(span) if span.first == page => SpanError::WrongLength(page),
            Some(_) => SpanError::NeverGiven(page),
            None => SpanError::AlreadyFree(page),
        };
        let before = self.snapshot();
        let heap = self.heap.inner_mut();
        assert_eq!(heap.free(range, Density::Sparse), Err(fault), "free of {range:?}");
        assert_eq!(heap.resize(range, Pages(1)), Err(fault), "resize of {range:?}");
        assert_eq!(self.snapshot(), before);
    }

    /// But time and past demand.
    pub fn fingerprint(&self) -> u64 {
        let (heap, mut hash) = (self.heap.inner(), DefaultHasher::new());
        let granted = self.sim.granted();
        granted.0.hash(&mut hash);
        for id in (0..granted.0).map(HugePageId) {
            // SAFETY: below the capacity; no call writes trackers while the heap is borrowed.
            unsafe { &*self.trackers.cast::<Tracker<G>>().add(id.0 as usize) }.hash(&mut hash);
            (self.sim.is_huge(id), self.sim.advice(id) == Some(Advice::Huge)).hash(&mut hash);
            (G::page(id, 0).0..G::page(id, G::PAGES).0)
                .for_each(|page| self.sim.written(PageRange::new(PageId(page), Pages(1))).0.hash(&mut hash));
        }
        self.out.iter().for_each(|span| (span.first.0, span.len.0).hash(&mut hash));
        let calls = self.faults.calls();
        let refuses_in = match self.rule {
            FaultRule::Never => None,
            FaultRule::Nth(n) => n.checked_sub(calls + 1),
            FaultRule::Every(k) => Some(calls % k),
            FaultRule::From(n) => Some(n.saturating_sub(calls)),
        };
        (&self.dense, self.faultless, refuses_in).hash(&mut hash);
        self.collapsing.iter().for_each(|id| id.0.hash(&mut hash));
        (heap.backing().from.0, heap.stats().cache_limit.0).hash(&mut hash);
        hash.finish()
    }

    fn assert_released(&self, before: &Snapshot, done: u64) {
        let after = self.heap.inner().stats();
        assert_eq!(after.released_total, before.stats.released_total + done);
        assert_eq!(u64::from(before.stats.backed.0), u64::from(after.backed.0) + done);
        assert!(self.sim.backed_bytes().0 <= before.resident_bytes);
    }

    /// The converse if nothing was refused.
    fn use_new(&self, range: PageRange, zeroed: bool) {
        let zero = self.sim.written(range) == Pages(0);
        assert!(zero || !zeroed, "{range:?} does not read as zeros");
        if self.faultless {
            assert_eq!(zeroed, zero, "{range:?} reads as zeros, and the heap does not know it");
        }
        self.sim.touch(range);
    }

    fn assert_kept(&self, span: PageRange) {
        assert_eq!(self.sim.written(span), span.len, "{span:?} lost contents");
    }

    pub fn check(&self) {
        let heap = self.heap.inner();
        heap.check().unwrap_or_else(|broken| panic!("{broken:?}"));
        self.sim.check().unwrap_or_else(|broken| panic!("simulated floor: {broken:?}"));
        self.out.iter().for_each(|span| self.assert_kept(*span));
        let mut out: Vec<_> = self.out.iter().map(|s| (s.first, s.len)).collect();
        out.sort();
        let mut walked = Vec::new();
        heap.for_each_span(|span, _| walked.push((span.first, span.len)));
        assert_eq!(walked, out, "the walk over spans");
        let live: u32 = self.out.iter().map(|s| s.len.0).sum();
        let stats = heap.stats();
        assert_eq!((stats.in_use, heap.in_use(), self.heap.live()), (Pages(live), Pages(live), Pages(live)));
        assert_eq!((stats.granted, heap.granted()), (self.sim.granted(), self.sim.granted()));
        assert!(self.sim.granted() <= self.capacity);
        if let Some(zone) = self.zone {
            frames::check(zone, &self.out, &self.collapsing);
        }
        let (from, mut small) = (heap.backing().from, 0);
        for id in (0..self.sim.granted().0).map(HugePageId) {
            let advised = self.sim.advice(id) == Some(Advice::Huge);
            assert_eq!(advised, heap.is_requested(id), "{id:?}: whether hugepages are asked for, as from {from:?} on");
            small += u32::from(id >= from && !advised);
        }
        let (guarded, left) = (heap.figures().guarded.0, heap.figures().left_small.0);
        assert!(small <= guarded + left, "from {from:?} on all but {guarded} guarded and {left} others are asked for");
        assert_eq!(self.sim.backed_bytes(), stats.backed.bytes(), "pages with memory");
        assert_eq!(heap.backed_pages(), stats.backed);
        let (parts, mut census) = (heap.components(), Census::default());
        while heap.count_hugepages(&mut census, HugePages(3)) {}
        let used = parts.dense.used.0 + parts.sparse.used.0 + census.region_used.0 + G::pages(census.large).0;
        let free = parts.dense.free.0 + parts.sparse.free.0 + parts.cached.0 + parts.region_free.0;
        assert_eq!((used, used + free), (live, stats.backed.0), "{parts:?}, {census:?}");
        assert_eq!((G::pages(census.intact), parts.slack), (stats.intact, stats.slack));
        assert!(census.broken <= stats.broken && census.left_small <= heap.figures().left_small, "{census:?}");
        assert_eq!(stats.backed, Pages(live + stats.cached.0 + stats.free_backed.0));
        assert_eq!(self.sim.huge_bytes(), stats.intact.bytes(), "pages on hugepages");
        assert!(self.sim.backed_bytes() <= G::pages(heap.backed()).bytes(), "unbacked hugepages have no memory");
    }

    fn free_runs(&self) -> Vec<PageRange> {
        let mut runs = Vec::new();
        let mut at = 0;
        let end = PageRange::new(PageId(G::pages(self.capacity).0), Pages(0));
        for span in self.heap.spans().chain([end]) {
            runs.push(PageRange::new(PageId(at), Pages(span.first.0 - at)));
            at = span.end().0;
        }
        runs
    }

    /// Short spans: no hugepage has a free run that holds it wherever the run begins. Longer ones:
    /// no run of free hugepages, up to regions' borders; a hugepage being collapsed is not free.
    pub fn refusal_is_right(&self, pages: u32, align: u32) -> bool {
        if pages == 0 || pages.max(align) > G::pages(self.capacity).0 {
            return true;
        }
        if pages < G::PAGES && align < G::PAGES {
            let fits = |run: &PageRange| {
                (G::hugepage(run.first).0..=G::hugepage(run.end()).0).any(|id| {
                    let first = run.first.0.max(id * G::PAGES);
                    let end = run.end().0.min((id + 1) * G::PAGES);
                    end.saturating_sub(first) >= pages + align - 1
                })
            };
            return !self.free_runs().iter().any(fits);
        }
        let (len, align) = (G::hugepages_up(Pages(pages)).0, align.div_ceil(G::PAGES));
        let block = if self.heap.inner().stats().region.0 > 0 { G::REGION } else { self.capacity.0 };
        let fits = |run: &PageRange| {
            let (first, end) = (run.first.0.div_ceil(G::PAGES), run.end().0 / G::PAGES);
            (first / block..=end / block).any(|i| {
                let (start, end) = (first.max(i * block).next_multiple_of(align), end.min((i + 1) * block));
                let mut starts = (start..(end + 1).saturating_sub(len)).step_by(align as usize);
                starts.any(|start| self.collapsing.iter().all(|id| !(start..start + len).contains(&id.0)))
            })
        };
        !self.free_runs().iter().any(fits)
    }

    pub fn drain(&mut self) {
        while !self.collapsing.is_empty() {
            self.step(Op::EndCollapse { error: None, took_ns: 0 }).expect("the end of a collapse is not refused");
        }
        for span in std::mem::take(&mut self.out) {
            self.assert_kept(span);
            self.heap.free(span, self.density(span)).expect("the span is out");
        }
        self.dense.clear();
        self.heap.inner_mut().release_all(Breaking::Always);
        self.check();
        assert_eq!((self.sim.backed_bytes().0, self.heap.inner().backed()), (0, HugePages(0)));
    }
}

impl World<Huge2M> {
    pub fn with_frames(capacity: u32, thp: ThpMode, backing: HugeBacking) -> Self {
        let mut world = Self::new(capacity, thp, backing);
        let zone = frames::zone(world.capacity);
        world.heap.inner_mut().set_frames(frames::seat(zone));
        world.zone = Some(zone);
        world
    }
}

impl<G: Geometry> Drop for World<G> {
    fn drop(&mut self) {
        // SAFETY: `new`'s box. Dropping the heap does not touch its table.
        drop(unsafe { Box::from_raw(self.trackers) });
    }
}

pub fn full() -> bool {
    std::env::var_os("CRATON_FULL").is_some_and(|v| v == "1")
}
