//! Small heaps.

use craton_pheap::{Config, Heap, Model, Offset, Options, Slot};
use craton_sim::SimPersistent;

pub fn config(model: Model) -> Config {
    Config { model, lanes: 2, half: 6, uuid: 0x1234_5678_9abc_def0_1111, ..Config::default() }
}

pub fn options() -> Options {
    Options { arenas: 1, markers: 1, ..Options::default() }
}

pub fn create<const F: bool>(model: Model, limit: u64) -> (SimPersistent<F>, Heap<SimPersistent<F>>) {
    let medium = SimPersistent::new(1 << 16, limit);
    let heap = Heap::create(medium.clone(), config(model), options()).unwrap();
    (medium, heap)
}

/// An object of slots.
pub fn table<const F: bool>(heap: &Heap<SimPersistent<F>>, slots: u64) -> Vec<Slot> {
    let root = heap.add_root(b"table", 1).unwrap();
    let at = heap.alloc_with(root, slots * 8, |heap, at| {
        (0..slots).for_each(|i| heap.write(at, i * 8, 0));
    });
    slots_of(at.unwrap(), slots)
}

pub fn slots_of(at: Offset, slots: u64) -> Vec<Slot> {
    (0..slots).map(|i| Slot(at.0 + 8 * i)).collect()
}
