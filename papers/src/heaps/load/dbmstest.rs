//! DBMStest (NVAlloc §6.1): large objects of a Poisson distribution, of which nine of ten are freed
//! at random.

use crate::heaps::race::{Turn, counts, race};
use crate::heaps::{Figures, Heap, Refused, Slots, Task};
use craton_lab::rng::Rng;

const SLOTS: u64 = 1000;
const STEP: u64 = 32 << 10;
const STEPS_MOST: u64 = 16;
/// e^-4: four steps on average.
const FLOOR: f64 = 0.018_315_638_888_734_18;

fn bytes(rng: &mut Rng) -> u64 {
    let (mut steps, mut product) = (0, 1.0);
    loop {
        product *= f64::from(rng.below(1 << 24)) / f64::from(1 << 24);
        if product <= FLOOR {
            return STEP * steps.clamp(1, STEPS_MOST);
        }
        steps += 1;
    }
}

struct Table {
    slots: Slots,
    rng: Rng,
}

impl Table {
    fn new<H: Heap>(task: &Task, heap: &H, thread: u64) -> Result<Self, Refused> {
        Ok(Self { slots: Slots::new(heap, thread, task.of(SLOTS))?, rng: Rng::new(task.seed, thread) })
    }

    fn turn<H: Heap>(&mut self, heap: &H) -> Result<u64, Refused> {
        let mut operations = 0;
        for i in 0..self.slots.count() {
            let slot = self.slots.at(i);
            if heap.holds(slot) == 0 {
                let at = heap.alloc(slot, bytes(&mut self.rng))?;
                heap.store(at, i);
                operations += 1;
            }
        }
        for i in 0..self.slots.count() {
            if !self.rng.one_in(10) {
                heap.free(self.slots.at(i))?;
                operations += 1;
            }
        }
        Ok(operations)
    }
}

pub fn run<H: Heap>(task: &Task, heap: &H) -> Result<Figures, Refused> {
    race(heap, &task.pace(), task.threads, |thread| {
        let mut table = Table::new(task, heap, thread)?;
        Ok(Box::new(move || table.turn(heap)) as Turn<'_>)
    })
}

/// Offsets of metadata flushes, without slots and objects.
pub fn first_flushes<H: Heap>(task: &Task, heap: &H, keep: usize) -> Result<(Vec<u64>, Figures), Refused> {
    let mut table = Table::new(task, heap, 0)?;
    let Some(count) = heap.count() else { return Ok(Default::default()) };
    // With flushes of slots, which are removed.
    count.reset(4 * keep);
    let mut operations = table.turn(heap)?;
    while count.first_flushes().len() < 4 * keep {
        operations += table.turn(heap)?;
    }
    let all = count.first_flushes().into_iter().filter(|at| !table.slots.contains(*at));
    Ok((all.take(keep).collect(), counts(count.counters(), operations)))
}
