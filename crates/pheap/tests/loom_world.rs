//! A small heap, and threads that change it. In each order of steps its invariants hold, and a
//! crash loses nothing that has ended. Cells whose races loom detects stand for objects.

use crate::loom_medium::{Image, ModelMedium};
use craton_base::atomic::model::{check, check_weakened};
use craton_base::loom::cell::UnsafeCell;
use craton_base::loom::thread::{self, JoinHandle};
use craton_pheap::{Config, Error, Heap, Model, Offset, Options, Slot};
use std::sync::{Arc, Mutex};

/// A slab has four.
pub const SIZE: u64 = 16_000;

const UNIT: u64 = 65_536;
const UNITS: u64 = 8;
/// Slots are in lines of roots, which need no name.
const SLOTS: u64 = 4;
const ROOTS: u64 = 4096;
const LANES: u64 = 65_536;
const LANE_BYTES: u64 = 128;
/// For each of two threads, and the shared one.
const LANES_EACH: u64 = 3;

const STACK: usize = 1 << 16;

type ModelHeap<const F: bool> = Heap<ModelMedium<F>>;

pub struct World<const F: bool> {
    pub heap: ModelHeap<F>,
    medium: ModelMedium<F>,
    /// How often the object at each place was written.
    contents: Vec<UnsafeCell<u32>>,
}

// SAFETY: loom checks each access to the cells.
unsafe impl<const F: bool> Sync for World<F> {}
// SAFETY: as above.
unsafe impl<const F: bool> Send for World<F> {}

pub fn slot(number: u64) -> Slot {
    Slot(ROOTS + 64 * number)
}

fn options() -> Options {
    Options { arenas: 1, markers: 1, ..Options::default() }
}

fn on_large_stack<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    thread::Builder::new().stack_size(STACK).spawn(f).expect("loom has room for a thread")
}

/// A closed heap.
fn image<const F: bool>(kind: Model, prepare: fn(&ModelHeap<F>)) -> Image {
    let closed = Arc::new(Mutex::new(Image::from([])));
    let result = Arc::clone(&closed);
    check(0, move || {
        let closed = Arc::clone(&closed);
        let make = move || {
            let medium = ModelMedium::<F>::new(vec![0; (UNITS * UNIT / 8) as usize].into());
            let config = Config { model: kind, lanes: LANES_EACH as u32, half: 8, stripes: 1, ..Config::default() };
            let heap = Heap::create(medium.clone(), config, options()).unwrap();
            prepare(&heap);
            heap.close();
            *closed.lock().unwrap() = medium.images().remove(0);
        };
        on_large_stack(make).join().unwrap();
    });
    let image = result.lock().unwrap();
    Arc::clone(&image)
}

impl<const F: bool> World<F> {
    fn open(image: &Image) -> Result<Self, Error> {
        let medium = ModelMedium::<F>::new(Arc::clone(image));
        let lanes = (LANES..LANES + LANES_EACH * LANE_BYTES).step_by(8);
        medium.touch(lanes.chain((0..SLOTS).map(|number| slot(number).0)));
        let (heap, _) = Heap::open(medium.clone(), options())?;
        let contents = (0..UNITS * UNIT / 1024).map(|_| UnsafeCell::new(0)).collect();
        let world = Self { heap, medium, contents };
        world.heap.touch(&world.slots().map(|(_, at)| at).filter(|at| *at != 0).collect::<Vec<_>>());
        Ok(world)
    }

    fn slots(&self) -> impl Iterator<Item = (Slot, u64)> {
        (0..SLOTS).map(|number| (slot(number), self.heap.read(slot(number).0)))
    }

    fn write(&self, at: Offset) {
        // SAFETY: loom checks for exclusive access.
        self.contents[(at.0 / 1024) as usize].with_mut(|n| unsafe { *n += 1 });
    }

    /// Uses the object before the slot has it.
    pub fn alloc(&self, number: u64) {
        self.alloc_of(number, SIZE);
    }

    pub fn alloc_of(&self, number: u64, bytes: u64) {
        self.heap.alloc_with(slot(number), bytes, |_, at| self.write(at)).unwrap();
    }

    /// Uses the slot's object first.
    pub fn free(&self, number: u64) -> bool {
        let at = self.heap.read(slot(number).0);
        if at != 0 {
            self.write(Offset(at));
            self.heap.free_from(slot(number)).unwrap();
        }
        at != 0
    }

    fn verify(&self, kind: Model) {
        self.heap.check().unwrap();
        let slots: Vec<_> = self.slots().collect();
        let mut owned: Vec<u64> = slots.iter().map(|(_, at)| *at).filter(|at| *at != 0).collect();
        owned.sort_unstable();
        let mut objects = Vec::new();
        self.heap.objects(|at, _| objects.push(at.0));
        assert_eq!(objects, owned, "objects, and what slots have");
        // A collection knows named roots alone.
        let images = if kind == Model::Gc { Vec::new() } else { self.medium.images() };
        for image in images {
            let after = Self::open(&image).unwrap();
            assert_eq!(after.slots().collect::<Vec<_>>(), slots, "slots after a crash");
            after.heap.check().unwrap();
        }
    }
}

/// A thread's operations.
pub type Hand<const F: bool, R> = fn(&World<F>) -> R;

pub fn run<const F: bool, R: Send + 'static, const N: usize>(
    kind: Model,
    prepare: fn(&ModelHeap<F>),
    hands: [Hand<F, R>; N],
    verify: fn(&World<F>, [R; N]),
) {
    check(2, model(kind, false, prepare, hands, verify));
}

/// After a third thread has used the heap: all threads claim and lock.
pub fn run_with_many<const F: bool, R: Send + 'static, const N: usize>(
    kind: Model,
    prepare: fn(&ModelHeap<F>),
    hands: [Hand<F, R>; N],
    verify: fn(&World<F>, [R; N]),
) {
    check(2, model(kind, true, prepare, hands, verify));
}

/// With every ordering Relaxed.
pub fn run_weakened<const F: bool, R: Send + 'static, const N: usize>(
    prepare: fn(&ModelHeap<F>),
    hands: [Hand<F, R>; N],
) {
    check_weakened(2, model(Model::Log, false, prepare, hands, |_, _| {}));
}

fn model<const F: bool, R: Send + 'static, const N: usize>(
    kind: Model,
    are_many: bool,
    prepare: fn(&ModelHeap<F>),
    hands: [Hand<F, R>; N],
    verify: fn(&World<F>, [R; N]),
) -> impl Fn() + Send + Sync + 'static {
    let image = image(kind, prepare);
    move || {
        let image = Arc::clone(&image);
        let threads = move || {
            let world = Arc::new(World::open(&image).unwrap());
            if are_many {
                let world = Arc::clone(&world);
                on_large_stack(move || world.heap.touch(&[])).join().unwrap();
            }
            let [first, others @ ..] = &hands[..] else { return };
            let others = others.iter().map(|hand| {
                let (world, hand) = (Arc::clone(&world), *hand);
                on_large_stack(move || hand(&world))
            });
            let others: Vec<_> = others.collect();
            let mut results = vec![first(&world)];
            results.extend(others.into_iter().map(|other| other.join().unwrap()));
            world.verify(kind);
            verify(&world, results.try_into().unwrap_or_else(|_| unreachable!("a result a hand")));
        };
        on_large_stack(threads).join().unwrap();
    }
}
