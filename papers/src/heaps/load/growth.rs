//! Growth of a heap's file. The authors' NVAlloc keeps 494 MB after 2000 short threads, and takes
//! 14 MB for an object of 512 KB.

use crate::heaps::{Figures, Heap, Refused, Slots, Task, space};
use std::thread;

const THREADS: u64 = 2000;
const SIZES: [u64; 2] = [64, 200];
const LARGE: u64 = 512 << 10;

pub fn short_threads<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    let slots = Slots::new(heap, 0, SIZES.len() as u64)?;
    grown(task, || {
        for _ in 0..task.of(THREADS) {
            let one = || {
                for (i, bytes) in SIZES.into_iter().enumerate() {
                    let at = heap.alloc(slots.at(i as u64), bytes)?;
                    heap.store(at, bytes);
                }
                (0..slots.count()).try_for_each(|i| heap.free(slots.at(i)))
            };
            thread::scope(|scope| scope.spawn(one).join().expect("no thread panics"))?;
        }
        Ok(())
    })
}

/// Written to entirely.
pub fn one_large<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    let slots = Slots::new(heap, 0, 1)?;
    grown(task, || {
        let at = heap.alloc(slots.at(0), LARGE)?;
        (at..at + LARGE).step_by(8).for_each(|at| heap.store(at, at));
        Ok(())
    })
}

fn grown(task: &Task, act: impl FnOnce() -> Result<(), Refused>) -> Result<Figures, Refused> {
    let before = space::backed(&task.file());
    act()?;
    let after = space::backed(&task.file());
    Ok(Figures::from([
        ("grown_bytes".to_owned(), after.saturating_sub(before) as f64),
        ("peak_bytes".to_owned(), after as f64),
    ]))
}
