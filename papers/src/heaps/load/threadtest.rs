//! Threadtest (NVAlloc §6.1): objects of 64 bytes, allocated, then freed.

use crate::heaps::race::{Turn, race};
use crate::heaps::{Figures, Heap, Refused, Slots, Task};

const OBJECTS: u64 = 100_000;
const BYTES: u64 = 64;

pub fn run<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    let objects = task.of(OBJECTS);
    race(heap, &task.pace(), task.threads, |thread| {
        let slots = Slots::new(heap, thread, objects)?;
        let turn = move || {
            for i in 0..objects {
                let at = heap.alloc(slots.at(i), BYTES)?;
                heap.store(at, i);
            }
            for i in 0..objects {
                heap.free(slots.at(i))?;
            }
            Ok(2 * objects)
        };
        Ok(Box::new(turn) as Turn<'_>)
    })
}
