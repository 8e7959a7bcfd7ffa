//! A process in virtual time: its thread's sleep advances the clock.

use super::ground::{Ground, ground};
use crate::govern::background::{Background, Chore, Helper, Tended};
use crate::govern::limits::{Limited, Limits, System, Whose};
use crate::observe::segment::Segment;
use crate::observe::trace::Tracer;
use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Pages};
use craton_heap::gate::Gate;
use craton_heap::hooks::{Event, Hooks, SpanEvent, Usage};
use craton_heap::thread_cache::ThreadCache;
use craton_heap::{Heap, size_class};
use craton_os::cgroup;
use craton_pages::{PageHeapExt, Took};
use craton_sim::{RealFloor, VirtualClock};
use std::boxed::Box;
use std::vec::Vec;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

std::thread_local! {
    static CURRENT: Cell<Option<&'static Process>> = const { Cell::new(None) };
}

pub(crate) struct Reports;

impl Hooks for Reports {
    fn span(event: SpanEvent) {
        if let Some(p) = CURRENT.get() {
            p.trace.span(event);
        }
    }
    fn usage(usage: Usage, releasable: impl FnOnce() -> Pages) {
        if let Some(p) = CURRENT.get() {
            p.background.record_use(usage.backed, usage.in_use, releasable);
        }
    }
    fn event(event: Event) -> u64 {
        let Some(p) = CURRENT.get() else { return 0 };
        match event {
            Event::LimitPassed => p.background.want(Chore::Limits),
            Event::MappingKept | Event::DenseSmall => p.background.want_thread(),
            Event::Grows => p.background.want_refill(),
            _ => {}
        }
        0
    }
    fn keeps_mappings() -> bool {
        CURRENT.get().is_some_and(|p| p.background.life.is_running())
    }
}

pub(crate) type TestHeap = Heap<RealFloor, VirtualClock, Reports>;

pub(crate) struct Thread {
    clock: VirtualClock,
    rung: Cell<bool>,
    pub(crate) nudges: Cell<u32>,
    pub(crate) starts: Cell<u32>,
    pub(crate) refused: Cell<bool>,
    pub(crate) sleeps_on: Cell<bool>,
    pub(crate) company: Cell<bool>,
    /// The program's, during the next sleep.
    pub(crate) meanwhile: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Helper for &'static Thread {
    fn start(&self, _run: fn()) -> bool {
        self.rung.set(false);
        self.starts.set(self.starts.get() + 1);
        !self.refused.get()
    }
    fn join(&self) -> bool {
        true
    }
    fn ring(&self) {
        self.rung.set(true);
    }
    fn nudge(&self) {
        self.nudges.set(self.nudges.get() + 1);
    }
    fn is_rung(&self) -> bool {
        self.rung.get()
    }
    fn has_company(&self) -> bool {
        self.company.get()
    }
    fn sleep(&self, ns: Option<u64>) -> bool {
        match ns {
            Some(ns) => _ = self.clock.advance(ns),
            None => self.sleeps_on.set(true),
        }
        let meanwhile = self.meanwhile.borrow_mut().take();
        if let Some(program) = meanwhile {
            program();
        }
        self.rung.get()
    }
}

#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) group: Cell<Option<u64>>,
    pub(crate) group_read: Cell<u32>,
    pub(crate) is_partial: Cell<bool>,
    pub(crate) pressure: Cell<Option<u32>>,
    pub(crate) pressure_read: Cell<u32>,
    pub(crate) memory: Cell<u64>,
    pub(crate) is_sealed: Cell<bool>,
    pub(crate) is_shallow: Cell<bool>,
}

impl System for &'static Machine {
    fn may_query(&self) -> bool {
        !self.is_sealed.get()
    }
    fn group(&self) -> cgroup::Limits {
        self.group_read.set(self.group_read.get() + 1);
        let mut limits = cgroup::Limits::default();
        limits.memory_bytes = self.group.get();
        limits.memory_source = cgroup::Source::V2;
        limits.is_partial = self.is_partial.get();
        limits
    }
    fn pressure(&self) -> Option<u32> {
        self.pressure_read.set(self.pressure_read.get() + 1);
        self.pressure.get()
    }
    fn memory(&self) -> u64 {
        self.memory.get()
    }
    fn is_stack_deep(&self) -> bool {
        !self.is_shallow.get()
    }
    fn set_quota(&self, _thousandths: Option<u64>) -> usize {
        3
    }
}

pub(crate) struct Process {
    pub(crate) heap: &'static TestHeap,
    pub(crate) clock: VirtualClock,
    pub(crate) thread: &'static Thread,
    pub(crate) machine: &'static Machine,
    pub(crate) segment: &'static Segment,
    pub(crate) background: Background<VirtualClock, &'static Thread>,
    pub(crate) limits: Limits<VirtualClock, &'static Machine>,
    pub(crate) trace: Tracer,
    pub(crate) floor: RealFloor,
    cache: *mut ThreadCache,
    pub(crate) shrunk: Cell<u32>,
    pub(crate) collapses: Cell<u32>,
    /// In which the thread may not start.
    pub(crate) only_frees: Cell<bool>,
}

/// The clock begins at 1,000 s.
pub(crate) fn process(hugepages: u32) -> &'static Process {
    let Ground { heap, clock, floor, .. } = ground::<Reports>(hugepages, 1000 * SECOND_NS);
    let cache = Box::into_raw(Box::<ThreadCache>::new_uninit()).cast::<ThreadCache>();
    // SAFETY: memory for one cache, ours.
    unsafe { ThreadCache::begin(cache, heap.view(), &heap.flush_requests, 0, 256 << 10) };
    let thread: &'static Thread = Box::leak(Box::new(Thread {
        clock: clock.clone(),
        rung: Cell::new(false),
        nudges: Cell::new(0),
        starts: Cell::new(0),
        refused: Cell::new(false),
        sleeps_on: Cell::new(false),
        company: Cell::new(false),
        meanwhile: RefCell::new(None),
    }));
    let machine: &'static Machine = Box::leak(Box::default());
    let segment: &'static Segment = Box::leak(Box::new(Segment::new()));
    machine.pressure.set(Some(0));
    let process: &'static Process = Box::leak(Box::new(Process {
        heap,
        thread,
        machine,
        segment,
        background: Background::new(clock.clone(), thread),
        limits: Limits::new(clock.clone(), machine, segment),
        trace: Tracer::new(),
        clock,
        floor,
        cache,
        shrunk: Cell::new(0),
        collapses: Cell::new(0),
        only_frees: Cell::new(false),
    }));
    CURRENT.set(Some(process));
    process
}

impl Tended for Process {
    fn set_rate(&self, bytes_per_s: u64) {
        self.heap.set_release_rate(bytes_per_s);
    }
    fn tick(&self) -> (bool, Pages) {
        let (tick, in_use) = self.heap.tick();
        let kept = self.heap.age_kept();
        (tick.released > 0 || kept, in_use)
    }
    fn collapse(&self, is_first: bool) -> (bool, bool) {
        if is_first && !self.heap.collapse_is_due() {
            return (false, false);
        }
        let Some(id) = self.heap.begin_collapse() else { return (false, false) };
        self.collapses.set(self.collapses.get() + 1);
        (true, self.heap.end_collapse(id, Ok(()), Took::busy(1_000_000)))
    }
    fn refill(&self) -> bool {
        let Some(id) = self.heap.begin_refill() else {
            let cleared = self.heap.begin_clear();
            cleared.into_iter().for_each(|id| self.heap.end_clear(id, Ok(()), Took::default()));
            return cleared.is_some();
        };
        self.collapses.set(self.collapses.get() + 1);
        self.heap.end_collapse(id, Ok(()), Took::busy(200_000))
    }
    fn set_helped(&self, helped: bool) {
        self.heap.set_helped(helped);
    }
    fn keep_limits(&self, deep: bool) -> u64 {
        self.limits.round(deep, self)
    }
    fn is_settled(&self) -> bool {
        self.heap.surplus() == Pages(0) && !self.limits.reads_pressure(self)
    }
    fn drop_kept(&self) {
        self.heap.drop_kept();
    }
    fn release_now(&self) {
        self.heap.release_now();
    }
}

impl Limited for Process {
    fn gate(&self) -> &Gate {
        &self.heap.gate
    }
    fn used(&self) -> u64 {
        self.heap.used()
    }
    fn relieve(&self, most: u64) -> (u64, u64) {
        self.heap.relieve(most)
    }
    fn releasable(&self) -> Pages {
        self.heap.releasable()
    }
    fn shrink(&self, whose: Whose) {
        if whose == Whose::Others {
            self.heap.flush_requests.fetch_add(1, Relaxed);
            return;
        }
        self.shrunk.set(self.shrunk.get() + 1);
        // SAFETY: ours; empty lists may begin anew.
        unsafe {
            self.heap.empty_cache(self.cache);
            ThreadCache::begin(self.cache, self.heap.view(), &self.heap.flush_requests, 0, 256 << 10);
        }
    }
    fn looked(&self) {
        self.background.forget(Chore::Limits);
    }
}

impl Process {
    pub(crate) fn request(&self) {
        for chore in Chore::ALL {
            if self.background.claim(chore, !self.only_frees.get(), true) {
                match chore {
                    Chore::Limits => self.limits.act(self),
                    Chore::Thread => self.background.start(|| unreachable!("tests run it"), self),
                    Chore::Round => self.background.round_in_request(!self.machine.is_shallow.get(), self),
                    Chore::Release => _ = self.heap.release_now(),
                    Chore::Wake | Chore::Refill => self.thread.nudge(),
                    Chore::Later | Chore::Publish => {}
                }
            }
        }
    }

    pub(crate) fn go_on(&self) {
        let objects: Vec<_> = (0..64).map(|_| self.alloc(30 << 10)).collect();
        objects.into_iter().for_each(|object| self.free(object));
        self.request();
    }

    /// Null if refused. Above 256 KiB each is a slow request.
    pub(crate) fn alloc(&self, bytes: usize) -> *mut u8 {
        if bytes > size_class::MAX_CLASSED {
            let object = self.heap.allocate_large(bytes, 1, false);
            self.request();
            return object;
        }
        let class = size_class::class_of(bytes);
        // SAFETY: ours, and of this heap.
        unsafe {
            let object = ThreadCache::pop(self.cache, class);
            if !object.is_null() {
                return object;
            }
            let object = self.heap.refill(self.cache, class);
            self.request();
            object
        }
    }

    pub(crate) fn free(&self, object: *mut u8) {
        // SAFETY: ours; tests free what they allocated.
        unsafe {
            if !ThreadCache::push(self.cache, object) {
                self.heap.take_back(Some(self.cache), object).expect("it is out");
                self.request();
            }
        }
    }

    pub(crate) fn fill(&self, bytes: u64) -> Vec<*mut u8> {
        (0..bytes / 4000).map(|_| self.alloc(4000)).inspect(|object| assert!(!object.is_null())).collect()
    }

    /// Frees 63 in 64.
    pub(crate) fn leave_holes(&self, objects: Vec<*mut u8>) -> Vec<*mut u8> {
        let (kept, freed): (Vec<_>, Vec<_>) = objects.into_iter().enumerate().partition(|(i, _)| i % 64 == 0);
        freed.into_iter().for_each(|(_, object)| self.free(object));
        kept.into_iter().map(|(_, object)| object).collect()
    }

    pub(crate) fn backed(&self) -> u64 {
        self.heap.pages().backed_pages().bytes().0 as u64
    }

    pub(crate) fn now_s(&self) -> u64 {
        self.clock.now_ns() / SECOND_NS
    }

    pub(crate) fn sleep(&self, seconds: u64) {
        let end = self.clock.now_ns() + seconds * SECOND_NS;
        let mut rounds = self.background.rounds();
        while self.background.life.is_running() && self.clock.now_ns() < end {
            let goes_on = self.background.rest(&mut rounds, self);
            if !goes_on || self.thread.sleeps_on.get() || !self.background.turn(&mut rounds, self) {
                break;
            }
        }
        self.clock.advance(end.saturating_sub(self.clock.now_ns()));
    }

    /// Requests every tenth of a second, without the thread.
    pub(crate) fn work(&self, seconds: u64) {
        for _ in 0..10 * seconds {
            self.clock.advance(SECOND_NS / 10);
            self.go_on();
        }
    }
}
