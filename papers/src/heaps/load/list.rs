//! A singly linked list, found again after its process ended (NVAlloc §6.6, figure 18).

use crate::heaps::{Figures, Heap, Refused, Task};
use craton_lab::rng::Rng;
use std::time::Instant;

pub const NODES: u64 = 1_000_000;
const LEAST: u32 = 64;
const MOST: u32 = 128;

/// Leaves the heap open: the process must end at once.
pub fn make<H: Heap>(task: &Task, heap: H) -> Result<Figures, String> {
    let made = link(task, &heap);
    let why = heap.why();
    std::mem::forget(heap);
    made.map_err(|_| format!("{} refused a node: {why}", task.heap.name()))?;
    Ok(Figures::from([("nodes".to_owned(), task.of(NODES) as f64)]))
}

fn link<H: Heap>(task: &Task, heap: &H) -> Result<(), Refused> {
    let (mut rng, mut slot) = (Rng::new(task.seed, 0), heap.root(0));
    for _ in 0..task.of(NODES) {
        let at = heap.alloc(slot, (LEAST + rng.below(MOST - LEAST + 1)).into())?;
        // A node begins with the next one's slot.
        (at..at + H::SLOT_BYTES).step_by(8).for_each(|at| heap.store(at, 0));
        heap.persist(at, H::SLOT_BYTES);
        slot = at;
    }
    Ok(())
}

pub fn open<H: Heap>(task: &Task, heap: &H, opening: Instant) -> Result<Figures, Refused> {
    let ms = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
    let opened = ms(opening);
    let start = Instant::now();
    heap.alloc(heap.root(1), LEAST.into())?;
    let first = ms(start);
    let (mut nodes, mut slot) = (0_u64, heap.root(0));
    while heap.holds(slot) != 0 {
        slot = heap.holds(slot);
        nodes += 1;
    }
    let lost = task.of(NODES) - nodes.min(task.of(NODES));
    Ok([("open_ms", opened), ("first_alloc_ms", first), ("ms", opened + first), ("lost_nodes", lost as f64)]
        .map(|(name, value)| (name.to_owned(), value))
        .into())
}
