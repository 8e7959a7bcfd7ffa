//! Larson (NVAlloc §6.1): new threads go on with a chain of slots.

use crate::heaps::race::{Turn, race};
use crate::heaps::{Figures, Heap, Refused, Slots, Task};
use craton_lab::rng::Rng;
use std::thread;

pub struct Kind {
    slots: u64,
    least: u32,
    most: u32,
    /// By one thread.
    each: u64,
}

pub const SMALL: Kind = Kind { slots: 1000, least: 64, most: 256, each: 10_000 };
pub const LARGE: Kind = Kind { slots: 500, least: 32 << 10, most: 512 << 10, each: 2000 };

impl Kind {
    fn bytes(&self, rng: &mut Rng) -> u64 {
        (self.least + rng.below(self.most - self.least + 1)).into()
    }
}

pub fn run<H: Heap>(task: &Task, heap: &H, kind: &'static Kind) -> Result<Figures, Refused> {
    let (slots, each) = (task.of(kind.slots), task.of(kind.each));
    race(heap, &task.pace(), task.threads, |chain| {
        let table = Slots::new(heap, chain, slots)?;
        let mut rng = Rng::new(task.seed, chain);
        for slot in 0..slots {
            heap.alloc(table.at(slot), kind.bytes(&mut rng))?;
        }
        let mut replace = move || {
            for _ in 0..each {
                let slot = table.at(rng.below(slots as u32).into());
                heap.free(slot)?;
                let at = heap.alloc(slot, kind.bytes(&mut rng))?;
                heap.store(at, slot);
            }
            Ok(2 * each)
        };
        let turn = move || thread::scope(|scope| scope.spawn(&mut replace).join().expect("no thread panics"));
        Ok(Box::new(turn) as Turn<'_>)
    })
}
