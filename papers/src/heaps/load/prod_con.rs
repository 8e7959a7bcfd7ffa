//! Prod-con (NVAlloc §6.1): in each pair of threads, one allocates objects, the other frees them.

use crate::heaps::race::{Turn, race};
use crate::heaps::{Figures, Heap, Refused, Slots, Task};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, yield_now};

/// Under way.
const RING: u64 = 16_384;
const OBJECTS: u64 = 65_536;
const BYTES: u64 = 64;

/// On its line.
#[derive(Default)]
#[repr(align(64))]
struct Counter(AtomicU64);

pub fn run<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    let (ring, objects) = (task.of(RING), task.of(OBJECTS));
    race(heap, &task.pace(), (task.threads / 2).max(1), |pair| {
        let slots = Slots::new(heap, pair, ring)?;
        Ok(Box::new(move || pass(heap, &slots, objects)) as Turn<'_>)
    })
}

fn pass<H: Heap>(heap: &H, slots: &Slots, objects: u64) -> Result<u64, Refused> {
    let (made, freed, failed) = (Counter::default(), Counter::default(), AtomicBool::new(false));
    let wait = |counter: &Counter, least: u64| {
        // ORDERING: pairs with the releases below: a slot is full, or empty, before it counts.
        while counter.0.load(Ordering::Acquire) < least {
            if failed.load(Ordering::Relaxed) {
                return Err(Refused);
            }
            yield_now();
        }
        Ok(())
    };
    let produce = || {
        for i in 0..objects {
            wait(&freed, (i + 1).saturating_sub(slots.count()))?;
            let at = heap.alloc(slots.at(i % slots.count()), BYTES)?;
            heap.store(at, i);
            // ORDERING: pairs with the acquire in `wait`.
            made.0.store(i + 1, Ordering::Release);
        }
        Ok(())
    };
    let consume = || {
        for i in 0..objects {
            wait(&made, i + 1)?;
            heap.free(slots.at(i % slots.count()))?;
            // ORDERING: pairs with the acquire in `wait`.
            freed.0.store(i + 1, Ordering::Release);
        }
        Ok(())
    };
    let noted = |done: Result<(), Refused>| {
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    };
    thread::scope(|scope| {
        let producer = scope.spawn(|| noted(produce()));
        let consumed = noted(consume());
        producer.join().expect("no thread panics").and(consumed).map(|()| 2 * objects)
    })
}
