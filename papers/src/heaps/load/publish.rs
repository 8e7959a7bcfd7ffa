//! Objects that are linked eight at a time, as one step (PMDK's actions); frees do not count.

use crate::heaps::{Figures, Heap, Refused, Slots, Task};
use craton_kv::{Change, Store};
use std::time::Instant;

const BATCH: u64 = 8;
const BATCHES: u64 = 100;
const BYTES: u64 = 64;
/// For all heaps.
const WORD: u64 = 8;

pub fn run<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    let words = Slots::new(heap, 0, BATCH * BATCHES)?.at(0);
    let (mut objects, mut ns) = (0, 0.0);
    let start = Instant::now();
    let mut warm = true;
    loop {
        let turn = Instant::now();
        for batch in 0..BATCHES {
            publish(heap, words + batch * BATCH * WORD)?;
        }
        ns += turn.elapsed().as_secs_f64() * 1e9;
        objects += BATCH * BATCHES;
        for batch in 0..BATCHES {
            let free = |i| Change::Free { slot: words + (batch * BATCH + i) * WORD };
            heap.commit((0..BATCH).map(free)).map_err(|_| Refused)?;
        }
        let now = start.elapsed();
        if warm && now >= task.pace().warm {
            (warm, objects, ns) = (false, 0, 0.0);
        }
        if !warm && now >= task.pace().warm + task.pace().run && objects > 0 {
            return Ok(Figures::from([("ns_per_op".to_owned(), ns / objects as f64)]));
        }
    }
}

#[inline]
fn publish<S: Store>(store: &S, slots: u64) -> Result<(), Refused> {
    // A refusal in the middle frees what is reserved.
    let objects = craton_kv::store::reserve_all(store, [BYTES; BATCH as usize]).map_err(|_| Refused)?;
    let attach = |(slot, object)| Change::Attach { slot, object };
    store.commit((slots..).step_by(WORD as usize).zip(objects).map(attach)).map_err(|_| Refused)
}
