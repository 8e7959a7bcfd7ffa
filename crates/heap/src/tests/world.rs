//! A heap and a cache over a simulated floor.

use super::ground::{Ground, ground, ground_with, hardened_ground};
use crate::Misuse;
use crate::heap::Heap;
use crate::hooks::{Hooks, NoHooks};
use crate::thread_cache::{HardenedCache, ThreadCache};
use craton_base::{HugePages, PageId};
use craton_sim::{FaultPlan, FaultRule, RealFloor, SimSystem, VirtualClock};
use std::boxed::Box;
use std::vec::Vec;

/// Bytes at the start, and with each hugepage.
pub(crate) type Metadata = (usize, usize);

pub(crate) type TestHeap<H = NoHooks> = Heap<RealFloor, VirtualClock, H>;

pub(crate) struct World<H: Hooks = NoHooks> {
    pub(crate) heap: &'static TestHeap<H>,
    pub(crate) cache: *mut ThreadCache,
    pub(crate) faults: FaultPlan,
    pub(crate) clock: VirtualClock,
    pub(crate) system: SimSystem,
    pub(crate) floor: RealFloor,
}

pub(crate) fn world(hugepages: u32, budget: usize) -> World {
    on(ground(hugepages, 1), budget)
}

pub(crate) fn hardened_world<H: Hooks>(hugepages: u32) -> World<H> {
    on(hardened_ground(hugepages), 1 << 20)
}

pub(crate) fn world_of<H: Hooks>(hugepages: u32, budget: usize, metadata: Metadata) -> World<H> {
    on(ground_with(hugepages, 1, metadata), budget)
}

fn on<H: Hooks>(ground: Ground<H>, budget: usize) -> World<H> {
    let Ground { heap, faults, clock, system, floor } = ground;
    World { heap, cache: cache_of(heap, 0, budget), faults, clock, system, floor }
}

fn cache_of<H: Hooks>(heap: &TestHeap<H>, home: usize, budget: usize) -> *mut ThreadCache {
    let cache = Box::into_raw(Box::<HardenedCache>::new_uninit()).cast::<ThreadCache>();
    // SAFETY: memory for one cache of either kind, ours.
    unsafe {
        (*cache).number = 0;
        ThreadCache::begin(cache, heap.view(), &heap.flush_requests, home, budget);
    }
    cache
}

pub(crate) fn stamp(object: *mut u8, bytes: usize) {
    for at in (0..bytes - 7).step_by(4096).chain([bytes - 8]) {
        // SAFETY: the object is the test's, and has that length.
        unsafe { object.add(at).cast::<usize>().write_unaligned(!at) };
    }
}

/// Whether [`stamp`]'s pattern is there.
pub(crate) fn holds(object: *mut u8, bytes: usize) -> bool {
    // SAFETY: as in `stamp`.
    (0..bytes - 7).step_by(4096).all(|at| unsafe { object.add(at).cast::<usize>().read_unaligned() } == !at)
}

/// Refuses the n-th call in a new world, for each n; with `rest` all later ones too.
pub(crate) fn for_each_refusal<H: Hooks>(rest: bool, make: impl Fn() -> World<H>, act: impl Fn(&World<H>, u64)) {
    for n in 1.. {
        let w = make();
        w.faults.set(if rest { FaultRule::From(n) } else { FaultRule::Nth(n) });
        act(&w, n);
        let refused = w.faults.refused();
        w.faults.set(FaultRule::Never);
        w.heap.pages.lock().check().unwrap();
        if refused == 0 {
            assert!(n > 1, "no call below can be refused");
            return;
        }
        assert!(n < 100, "refusals without end");
    }
}

impl World {
    pub(crate) fn over(heap: &'static TestHeap, home: usize) -> Self {
        let (faults, clock, system) = Default::default();
        let floor = RealFloor::new(HugePages(1));
        World { heap, cache: cache_of(heap, home, 1 << 20), faults, clock, system, floor }
    }
}

impl<H: Hooks> World<H> {
    /// With a cache for a thread at another home.
    pub(crate) fn at_home(&self, home: usize) -> Self {
        let (faults, clock, system) = (self.faults.clone(), self.clock.clone(), self.system.clone());
        let floor = self.floor.clone();
        World { heap: self.heap, cache: cache_of(self.heap, home, 256 << 10), faults, clock, system, floor }
    }

    #[allow(clippy::mut_from_ref)] // One reference at a time.
    pub(crate) fn cache(&self) -> &mut ThreadCache {
        // SAFETY: the cache is ours, and no other reference is used meanwhile.
        unsafe { &mut *self.cache }
    }

    pub(crate) fn take_all(&self, class: usize, n: usize) -> Vec<*mut u8> {
        (0..n).map(|_| self.take(class)).inspect(|object| assert!(!object.is_null())).collect()
    }

    pub(crate) fn give_all(&self, objects: impl IntoIterator<Item = *mut u8>) {
        objects.into_iter().for_each(|object| self.give(object).unwrap());
    }

    pub(crate) fn large(&self, bytes: usize) -> *mut u8 {
        self.heap.allocate_large(bytes, 1, false)
    }

    pub(crate) fn page(&self, object: *mut u8) -> PageId {
        self.heap.page_of(object as usize).expect("an object of the region")
    }

    pub(crate) fn usable(&self, object: *mut u8) -> Result<usize, Misuse> {
        self.heap.find(object).usable()
    }

    pub(crate) fn take(&self, class: usize) -> *mut u8 {
        // SAFETY: the cache is ours, and of this heap.
        unsafe {
            let object = ThreadCache::pop(self.cache, class);
            if object.is_null() { self.heap.refill(self.cache, class) } else { object }
        }
    }

    pub(crate) fn give(&self, object: *mut u8) -> Result<(), Misuse> {
        // SAFETY: as above; tests give up what they give.
        unsafe {
            if ThreadCache::push(self.cache, object) {
                return Ok(());
            }
            self.heap.take_back(Some(self.cache), object).map(|_| ())
        }
    }

    pub(crate) fn empty(&self) {
        // SAFETY: the cache is ours.
        unsafe { self.heap.empty_cache(self.cache) };
        self.heap.release(|| ());
        self.heap.pages.lock().check().unwrap();
    }
}
