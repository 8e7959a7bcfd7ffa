//! Per-CPU caches while others flush them: no object is lost or duplicated, and an area is made
//! once.
//!
//! Restartable sequences run under a lock of their processor, and an interruption waits for those
//! in progress. (In the kernel, one that is waited for either committed before, or sees the state
//! after a restart.)
#![cfg(loom)]

// The real file looks for the system's modules here.
extern crate self as craton_os;

#[path = "../src/cpu_cache.rs"]
#[allow(dead_code)]
mod cpu_cache;

#[path = "../src/hooks.rs"]
#[allow(dead_code)]
mod hooks;

/// Batches of two objects, arrays of two at first and of four at most.
mod size_class {
    pub const CLASSES: usize = 1;

    pub const fn batch(_class: usize) -> u32 {
        2
    }

    pub const fn size_of_class(_class: usize) -> usize {
        4096
    }
}

mod misuse {
    pub use craton_heap::Misuse;
}

mod shard {}

/// Mappings are made before the model's threads begin.
mod mapping {
    use craton_base::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering::Relaxed};
    use craton_base::{Machine, Mappings};
    use std::alloc::{Layout, alloc_zeroed};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    #[repr(C, align(64))]
    struct Area {
        counts: [AtomicU32; 6],
        overflows: [AtomicU8; 2],
        left: AtomicI32,
        seen: AtomicU32,
        slots: [AtomicPtr<u8>; 4],
    }

    pub static MAPPED: AtomicUsize = AtomicUsize::new(0);
    static READY: Mutex<Vec<usize>> = Mutex::new(Vec::new());

    /// Loom must see their contents.
    pub fn prepare(areas: usize) {
        MAPPED.store(0, Relaxed);
        let mut ready = READY.lock().unwrap();
        ready.clear();
        for _ in 0..areas {
            // SAFETY: the layout is not empty, and zeros are valid.
            let area = unsafe { &*alloc_zeroed(Layout::new::<Area>()).cast::<Area>() };
            area.counts.iter().chain([&area.seen]).for_each(|count| assert_eq!(count.load(Relaxed), 0));
            area.overflows.iter().for_each(|count| assert_eq!(count.load(Relaxed), 0));
            area.slots.iter().for_each(|slot| assert!(slot.load(Relaxed).is_null()));
            assert_eq!(area.left.load(Relaxed), 0);
            ready.push(std::ptr::from_ref(area) as usize);
        }
    }

    pub struct System;

    impl Machine for System {
        fn cpu(&self) -> usize {
            0
        }

        fn page_size(&self) -> usize {
            super::PAGE
        }

        fn touch(&self, _: usize) -> u64 {
            0
        }

        fn resident(&self, _: usize, _: usize) -> usize {
            0
        }

        fn huge(&self, _: usize, _: usize) -> Option<usize> {
            None
        }

        fn shut(&self, _: usize, _: usize, _: bool) -> bool {
            false
        }
    }

    impl Mappings for System {
        fn map(&self, bytes: usize, align: usize) -> Option<usize> {
            map(bytes, align)
        }

        fn reserve(&self, _bytes: usize) -> Option<usize> {
            None
        }

        fn discard(&self, _at: usize, _bytes: usize) {}

        /// A later use shows as lost objects.
        fn unmap(&self, _at: usize, _bytes: usize) {
            MAPPED.fetch_sub(1, Relaxed);
        }

        fn advise_huge(&self, _at: usize, _bytes: usize) {}

        fn refuse_huge(&self, _at: usize, _bytes: usize, _refuse: bool) {}

        fn grow(&self, _at: usize, _old: usize, _new: usize, _may_move: bool) -> Option<usize> {
            None
        }

        fn replace(&self, _at: usize, _old: usize, _to: usize, _new: usize) -> bool {
            false
        }

        fn move_memory(&self, _at: usize, _bytes: usize, _to: usize) -> bool {
            false
        }
    }

    fn map(bytes: usize, _align: usize) -> Option<usize> {
        assert!(size_of::<Area>().next_multiple_of(super::PAGE) == bytes, "an area of another layout");
        MAPPED.fetch_add(1, Relaxed);
        READY.lock().unwrap().pop()
    }
}

mod rseq {
    use craton_base::atomic::{AtomicPtr, AtomicU32, Ordering};
    use craton_base::loom::{self, sync::Mutex};
    use std::ptr::null_mut;
    use std::sync::atomic::AtomicBool;

    pub const PROCESSORS: usize = 1;

    pub type Table = [AtomicPtr<u8>; PROCESSORS];

    #[derive(Clone, Copy)]
    pub struct Place {
        pub counts: u32,
        pub slots: u32,
    }

    loom::lazy_static! {
        static ref RUNNING: [Mutex<()>; PROCESSORS] = std::array::from_fn(|_| Mutex::new(()));
    }

    pub static INTERRUPTS: AtomicBool = AtomicBool::new(true);

    #[derive(Clone, Copy)]
    pub struct Rseq;

    /// As `begin!` of the assembly finds it.
    struct Array {
        count: &'static AtomicU32,
        capacity: &'static AtomicU32,
        slots: *const AtomicPtr<u8>,
    }

    impl Array {
        fn of(table: &Table, place: Place) -> Option<Self> {
            // ORDERING: Acquire, as every load on x86-64; pairs with the Release that published the
            // area.
            let area = table[0].load(Ordering::Acquire);
            // SAFETY: areas live for ever, and hold the place's words and slots.
            (!area.is_null()).then(|| unsafe {
                let counts = area.add(place.counts as usize).cast::<AtomicU32>();
                Self { count: &*counts, capacity: &*counts.add(1), slots: area.add(place.slots as usize).cast() }
            })
        }

        fn slot(&self, n: u32) -> &AtomicPtr<u8> {
            // SAFETY: the caller's number is below the array's room.
            unsafe { &*self.slots.add(n as usize) }
        }
    }

    impl Rseq {
        pub fn find() -> Option<Self> {
            // Loom must see it.
            drop(RUNNING[0].lock());
            Some(Self)
        }

        pub fn is_compact(&self) -> bool {
            true
        }

        pub fn processor(&self) -> Option<usize> {
            Some(0)
        }

        pub unsafe fn pop(&self, table: &Table, place: Place) -> *mut u8 {
            let _running = RUNNING[0].lock();
            let Some(array) = Array::of(table, place) else { return null_mut() };
            let n = array.count.load(Ordering::Relaxed);
            if n == 0 {
                return null_mut();
            }
            let object = array.slot(n - 1).load(Ordering::Relaxed);
            array.count.store(n - 1, Ordering::Relaxed);
            object
        }

        pub unsafe fn push(&self, table: &Table, place: Place, pointer: *mut u8) -> bool {
            let _running = RUNNING[0].lock();
            let Some(array) = Array::of(table, place) else { return false };
            let n = array.count.load(Ordering::Relaxed);
            if n >= array.capacity.load(Ordering::Relaxed) {
                return false;
            }
            array.slot(n).store(pointer, Ordering::Relaxed);
            array.count.store(n + 1, Ordering::Relaxed);
            true
        }

        pub fn interrupt(&self) -> bool {
            if INTERRUPTS.load(std::sync::atomic::Ordering::Relaxed) {
                drop(RUNNING[0].lock());
            }
            true
        }
    }
}

mod heap {
    use craton_base::loom::sync::Mutex;
    use craton_slab::Chain;
    use std::marker::PhantomData;

    pub struct Heap<F, C, H> {
        pub free: Mutex<Vec<usize>>,
        pub system: super::mapping::System,
        pub of: PhantomData<fn(F, C, H)>,
    }

    impl<F, C, H> Heap<F, C, H> {
        pub fn home(&self, _n: usize) -> usize {
            0
        }

        pub fn take(&self, _home: usize, _class: usize, want: u32) -> Chain {
            let (mut free, mut chain) = (self.free.lock().unwrap(), Chain::EMPTY);
            while chain.len() < want
                && let Some(object) = free.pop()
            {
                // SAFETY: the object is the heap's.
                unsafe { chain.push(object as *mut u8) };
            }
            chain
        }

        pub fn pop_marked(&self, _class: usize, chain: &mut Chain) -> Option<*mut u8> {
            chain.pop()
        }

        pub unsafe fn give(&self, _class: usize, mut chain: Chain) {
            let mut free = self.free.lock().unwrap();
            while let Some(object) = chain.pop() {
                assert!(!free.contains(&(object as usize)), "an object comes back twice");
                free.push(object as usize);
            }
        }

        pub unsafe fn give_marked(&self, class: usize, object: *mut u8) {
            let mut chain = Chain::EMPTY;
            // SAFETY: by the contract.
            unsafe {
                chain.push(object);
                self.give(class, chain);
            }
        }

        pub fn passes_on(&self, _home: usize, _class: usize) -> bool {
            false
        }

        pub unsafe fn pass_on_or_give(&self, _home: usize, class: usize, chain: Chain) {
            // SAFETY: by the contract.
            unsafe { self.give(class, chain) };
        }
    }
}

use cpu_cache::ProcessorCaches;
use craton_base::atomic::model::{check, check_weakened};
use craton_base::loom::cell::UnsafeCell;
use craton_base::loom::sync::Mutex;
use craton_base::loom::thread::{self, JoinHandle};
use craton_sim::{RealFloor, VirtualClock};
use rseq::Rseq;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const PAGE: usize = 4096;
const CLASS: usize = 1;
const OBJECTS: usize = 4;

type Heap = heap::Heap<RealFloor, VirtualClock, hooks::NoHooks>;

struct Object {
    words: std::cell::UnsafeCell<[usize; 2]>,
    uses: UnsafeCell<u32>,
}

struct World {
    caches: ProcessorCaches,
    heap: Heap,
    objects: Box<[Object; OBJECTS]>,
}

// SAFETY: loom runs one thread at a time, and sees races on the objects.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new() -> Arc<Self> {
        mapping::prepare(2);
        let object = |_| Object { words: std::cell::UnsafeCell::new([0; 2]), uses: UnsafeCell::new(0) };
        let objects: Box<[Object; OBJECTS]> = Box::new(std::array::from_fn(object));
        let free = objects.iter().map(|object| object.words.get() as usize).collect();
        let heap = Heap { free: Mutex::new(free), system: mapping::System, of: PhantomData };
        let world = Self { caches: ProcessorCaches::EMPTY, heap, objects };
        // SAFETY: called once, before any use.
        unsafe { world.caches.set_up::<hooks::NoHooks>() };
        assert!(!world.caches.in_use() && world.caches.areas() == 0);
        Arc::new(world)
    }

    fn warm() -> Arc<Self> {
        let world = Self::new();
        let objects = [world.take(), world.take()];
        objects.into_iter().for_each(|o| world.give(o));
        assert!(world.caches.bytes() > 0 && world.caches.areas() == 1);
        world
    }

    fn use_object(&self, object: *mut u8) {
        let of = |o: &&Object| o.words.get().cast::<u8>() == object;
        let object = self.objects.iter().find(of).expect("an object of this world");
        // SAFETY: loom checks for exclusive access.
        object.uses.with_mut(|n| unsafe { *n += 1 });
    }

    fn take(&self) -> *mut u8 {
        let object = self.caches.pop(&Rseq, CLASS);
        let object = if object.is_null() { self.caches.refill(&self.heap, &Rseq, CLASS) } else { object };
        assert!(!object.is_null(), "there are enough");
        self.use_object(object);
        object
    }

    fn give(&self, object: *mut u8) {
        self.use_object(object);
        if !self.caches.push(&Rseq, CLASS, object) {
            // SAFETY: the object is the caller's.
            unsafe { self.caches.overflow(&self.heap, &Rseq, CLASS, object) };
        }
    }

    fn check(&self) {
        assert!(self.caches.empty(&self.heap));
        assert_eq!(self.caches.bytes(), 0);
        assert_eq!(self.heap.free.lock().unwrap().len(), OBJECTS, "no object is lost");
        assert_eq!(self.caches.areas(), mapping::MAPPED.load(Relaxed), "an area is made once");
    }
}

fn beside(world: &Arc<World>, f: impl Fn(&World) + 'static) -> JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || f(&world))
}

fn emptied_in_use() {
    let world = World::warm();
    let other = beside(&world, |world| world.give(world.take()));
    let emptier = beside(&world, |world| assert!(world.caches.empty(&world.heap)));
    world.give(world.take());
    other.join().unwrap();
    emptier.join().unwrap();
    world.check();
}

#[test]
fn what_is_emptied_while_in_use_loses_nothing() {
    check(2, emptied_in_use);
}

#[test]
#[should_panic]
fn without_its_orderings_objects_are_in_two_hands() {
    check_weakened(2, emptied_in_use);
}

#[test]
fn without_the_interruption_something_would_be_lost() {
    let model = || {
        rseq::INTERRUPTS.store(false, Relaxed);
        let world = World::warm();
        let emptier = beside(&world, |world| _ = world.caches.empty(&world.heap));
        world.give(world.take());
        emptier.join().unwrap();
        world.check();
    };
    let outcome = std::panic::catch_unwind(|| check(2, model));
    rseq::INTERRUPTS.store(true, Relaxed);
    assert!(outcome.is_err(), "the model does not see it");
}

#[test]
fn of_two_that_make_an_area_one_does_while_a_third_looks() {
    check(2, || {
        let world = World::new();
        let other = beside(&world, |world| world.give(world.take()));
        let emptier = beside(&world, |world| world.caches.look(&world.heap));
        world.give(world.take());
        other.join().unwrap();
        emptier.join().unwrap();
        world.check();
    });
}

#[test]
fn two_that_empty_at_once_do_not_give_anything_twice() {
    check(2, || {
        let world = World::warm();
        let others = [beside(&world, |world| _ = world.caches.empty(&world.heap)), {
            beside(&world, |world| world.caches.look(&world.heap))
        }];
        world.give(world.take());
        others.into_iter().for_each(|other| other.join().unwrap());
        world.check();
    });
}
