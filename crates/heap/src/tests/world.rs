//! A heap and a cache of it without the process around them: over real bytes of a simulated floor, which can refuse.

use super::ground::{Ground, ground};
use crate::Misuse;
use crate::heap::Heap;
use crate::hooks::NoHooks;
use crate::thread_cache::ThreadCache;
use craton_sim::{FaultPlan, RealFloor, SimSystem, VirtualClock};
use std::boxed::Box;

pub(crate) type TestHeap = Heap<RealFloor, VirtualClock, NoHooks>;

pub(crate) struct World {
    pub(crate) heap: &'static TestHeap,
    pub(crate) cache: *mut ThreadCache,
    pub(crate) faults: FaultPlan,
    pub(crate) clock: VirtualClock,
    pub(crate) system: SimSystem,
}

pub(crate) fn world(hugepages: u32, budget: usize) -> World {
    let Ground { heap, faults, clock, system } = ground(hugepages, 1);
    World { heap, cache: cache_of(heap, 0, budget), faults, clock, system }
}

fn cache_of(heap: &TestHeap, home: usize, budget: usize) -> *mut ThreadCache {
    let cache = Box::into_raw(Box::<ThreadCache>::new_uninit()).cast::<ThreadCache>();
    // SAFETY: memory for one cache, ours.
    unsafe { ThreadCache::begin(cache, heap.view(), &heap.flush_requests, home, budget) };
    cache
}

impl World {
    /// A heap with a cache of its own, for a thread at a home.
    pub(crate) fn over(heap: &'static TestHeap, home: usize) -> Self {
        let (faults, clock, system) = Default::default();
        World { heap, cache: cache_of(heap, home, 1 << 20), faults, clock, system }
    }

    /// The same heap with a cache of its own, for another thread at another home.
    pub(crate) fn at_home(&self, home: usize) -> Self {
        let (faults, clock, system) = (self.faults.clone(), self.clock.clone(), self.system.clone());
        World { heap: self.heap, cache: cache_of(self.heap, home, 256 << 10), faults, clock, system }
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
