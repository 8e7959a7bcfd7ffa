//! Small heaps, and a tree of objects that shows whether a crash harmed it. A *node* has a mark and
//! its length in the first word, from which its contents follow, and a slot for a child.

use craton_base::{Medium, Space};
use craton_pheap::{Config, Error, Heap, Model, Offset, Options, Slot, Trace};
use craton_sim::{Rng, SimPersistent};
use std::sync::atomic::{AtomicU64, Ordering};

pub type Sim<const F: bool> = SimPersistent<F>;

pub fn config(model: Model) -> Config {
    Config { model, lanes: 3, half: 8, uuid: 0x1234_5678_9abc_def0_1111, ..Config::default() }
}

/// Above all counted ones, as a machine's clock.
fn stamp() -> u64 {
    static CLOCK: AtomicU64 = AtomicU64::new(1 << 40);
    CLOCK.fetch_add(1, Ordering::AcqRel)
}

pub fn options() -> Options {
    Options { arenas: 1, markers: 1, stamp: Some(stamp), ..Options::default() }
}

pub fn create<const F: bool>(model: Model, limit: u64) -> (Sim<F>, Heap<Sim<F>>) {
    let medium = SimPersistent::new(1 << 16, limit);
    let heap = Heap::create(medium.clone(), config(model), options()).unwrap();
    (medium, heap)
}

/// A part of them, and all with `CRATON_FULL=1`.
pub fn seeds(part: u64, all: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("CRATON_FULL").is_some() { all } else { part }
}

/// An object of empty slots.
pub fn table<M: Medium + Space>(heap: &Heap<M>, slots: u64) -> Vec<Slot> {
    let root = heap.add_root(b"table", 1).unwrap();
    let at = heap.alloc_with(root, slots * 8, |heap, at| {
        (0..slots).for_each(|i| heap.write(at, i * 8, 0));
    });
    slots_of(at.unwrap(), slots)
}

pub fn slots_of(at: Offset, slots: u64) -> Vec<Slot> {
    (0..slots).map(|i| Slot(at.0 + 8 * i)).collect()
}

/// Slots of nodes; leaves hang in the others.
pub const NODES: u64 = 4;
pub const SLOTS: u64 = 8;

/// Knows the table, nodes and leaves.
pub struct Typed;

impl<M: Medium> Trace<M> for Typed {
    fn trace(&self, medium: &M, tag: u64, at: u64, _: u64, reach: &mut dyn FnMut(u64, u64)) {
        let load = |at: u64| medium.word(at).load(std::sync::atomic::Ordering::Relaxed);
        match tag {
            1 => (0..SLOTS).for_each(|i| reach(load(at + 8 * i), if i < NODES { 2 } else { 3 })),
            2 => reach(load(at + 8), 2),
            _ => {}
        }
    }
}

pub fn write_node<M: Medium + Space>(heap: &Heap<M>, at: Offset, words: u64, mark: u64) {
    let first = mark << 16 | words;
    heap.write(at, 0, first);
    heap.write(at, 8, 0);
    (2..words).for_each(|i| heap.write(at, 8 * i, pattern(first, i)));
}

fn pattern(first: u64, i: u64) -> u64 {
    (first ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
}

/// The values of all reached slots.
pub fn snapshot<M: Medium + Space>(heap: &Heap<M>) -> Result<Vec<(u64, u64)>, String> {
    let root = heap.root(b"table").map_err(|e| e.to_string())?.slot;
    let table = heap.read(root.0);
    let mut found = vec![(root.0, table)];
    for i in 0..SLOTS {
        let mut slot = table + 8 * i;
        loop {
            let at = heap.read(slot);
            found.push((slot, at));
            if at == 0 || i >= NODES {
                break;
            }
            let first = heap.read(at);
            let words = first & 0xffff;
            if !(2..=20_000).contains(&words) || (2..words).any(|i| heap.read(at + 8 * i) != pattern(first, i)) {
                return Err(format!("the node at {at:#x} in slot {slot:#x} is spoilt"));
            }
            found.push((at | CONTENTS, first));
            slot = at + 8;
        }
    }
    Ok(found)
}

/// Marks the first word of a node in a snapshot.
const CONTENTS: u64 = 1;

/// Checks the heap; its objects are those that the table reaches.
pub fn check<M: Medium + Space>(heap: &Heap<M>) -> Result<Vec<(u64, u64)>, String> {
    // A log's ranges have their own tests.
    let checked = if heap.model() == Model::Frames { heap.verify() } else { heap.check() };
    checked.map_err(|e| e.to_string())?;
    let slots = snapshot(heap)?;
    let mut owned: Vec<u64> =
        slots.iter().filter(|(slot, at)| *at != 0 && slot & CONTENTS == 0).map(|(_, at)| *at).collect();
    owned.sort_unstable();
    let mut objects = Vec::new();
    heap.objects(|at, _| objects.push(at.0));
    if owned != objects {
        let lost: Vec<_> = objects.iter().filter(|at| !owned.contains(at)).collect();
        let wild: Vec<_> = owned.iter().filter(|at| !objects.contains(at)).collect();
        return Err(format!("objects without an owner {lost:x?}, slots without an object {wild:x?}"));
    }
    Ok(slots)
}

fn size(rng: &mut Rng) -> u64 {
    *rng.pick(&[16, 24, 64, 64, 64, 200, 1000, 3000, 5000, 9000, 16_000, 16_000, 16_000, 20_000, 70_000])
}

/// One random operation.
pub fn step<M: Medium + Space>(heap: &Heap<M>, rng: &mut Rng, mark: u64) -> Result<(), Error> {
    let table = heap.read(heap.root(b"table")?.slot.0);
    let leaf = |rng: &mut Rng| Slot(table + 8 * rng.in_range(NODES..SLOTS));
    let mut node = Slot(table + 8 * rng.below(NODES));
    while heap.read(node.0) != 0 && !rng.one_in(3) {
        node = Slot(heap.read(node.0) + 8);
    }
    let new_node = |slot: Slot, rng: &mut Rng| {
        let size = size(rng);
        heap.alloc_with(slot, size, |heap, at| write_node(heap, at, (size / 8).min(12), mark)).map(drop)
    };
    match rng.below(15) {
        0..=3 if heap.read(node.0) == 0 => new_node(node, rng),
        0..=3 => {
            // The child moves up.
            let at = heap.read(node.0);
            let mut batch = heap.batch();
            batch.free_and_set(node, heap.read(at + 8));
            batch.commit()
        }
        4 | 5 => {
            let slot = leaf(rng);
            if heap.read(slot.0) == 0 { heap.alloc_to(slot, size(rng)).map(drop) } else { heap.free_from(slot) }
        }
        6 => {
            let slot = leaf(rng);
            let size = *rng.pick(&[16, 64, 200, 1000]);
            heap.realloc(slot, size).map(drop)
        }
        7 => {
            let (a, b) = (leaf(rng), leaf(rng));
            let mut batch = heap.batch();
            for slot in if a == b { vec![a] } else { vec![a, b] } {
                if heap.read(slot.0) == 0 {
                    batch.alloc(slot, size(rng))?;
                } else {
                    batch.free(slot);
                }
            }
            batch.commit()
        }
        8 => {
            let (a, b) = (leaf(rng), leaf(rng));
            if a == b {
                return heap.set(a, heap.read(a.0));
            }
            let mut batch = heap.batch();
            batch.set(a, heap.read(b.0));
            batch.set(b, heap.read(a.0));
            batch.commit()
        }
        9 => {
            let slot = leaf(rng);
            let reserved = heap.reserve(size(rng))?;
            heap.replace(slot, reserved)
        }
        10 => {
            // By hand, as an application may.
            let slot = leaf(rng);
            let to = leaf(rng);
            if heap.read(slot.0) != 0 && heap.read(to.0) == 0 {
                let mut batch = heap.batch();
                batch.set(to, heap.read(slot.0));
                batch.set(slot, 0);
                return batch.commit();
            }
            let reserved = heap.reserve(64)?;
            heap.cancel(reserved);
            Ok(())
        }
        11 | 12 => {
            // A node is rewritten, while leaves come and go.
            let at = heap.read(node.0);
            let (a, b) = (leaf(rng), leaf(rng));
            let mut tx = heap.begin()?;
            if at != 0 {
                let (words, child) = (heap.read(at) & 0xffff, heap.read(at + 8));
                tx.snapshot(at, 8)?;
                tx.snapshot(at + 8, 8 * words - 8)?;
                write_node(heap, Offset(at), words, mark + 1000);
                heap.write(Offset(at), 8, child);
            }
            if heap.read(a.0) == 0 {
                tx.alloc(a, size(rng))?;
            } else {
                tx.free(a);
            }
            if a != b {
                tx.set(b, heap.read(b.0));
            }
            if rng.one_in(4) {
                return Ok(());
            }
            tx.commit()
        }
        13 => {
            heap.maintain(mark * 1000);
            Ok(())
        }
        _ => {
            heap.settle();
            Ok(())
        }
    }
}
