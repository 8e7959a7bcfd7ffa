//! Shbench (NVAlloc §6.1): random slots, small sizes more often.

use crate::heaps::race::{Turn, race};
use crate::heaps::{Figures, Heap, Refused, Slots, Task};
use craton_lab::rng::Rng;

const SLOTS: u64 = 8192;
const LEAST: u32 = 64;
const MOST: u32 = 1000;

pub fn run<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    let slots = task.of(SLOTS);
    race(heap, &task.pace(), task.threads, |thread| {
        let table = Slots::new(heap, thread, slots)?;
        let mut rng = Rng::new(task.seed, thread);
        let turn = move || {
            for _ in 0..2 * slots {
                let slot = table.at(rng.below(slots as u32).into());
                if heap.holds(slot) != 0 {
                    heap.free(slot)?;
                } else {
                    let at = heap.alloc(slot, (LEAST + rng.skewed(MOST - LEAST + 1)).into())?;
                    heap.store(at, slot);
                }
            }
            Ok(2 * slots)
        };
        Ok(Box::new(turn) as Turn<'_>)
    })
}
