//! Fragbench (NVAlloc §3.2, Table 1): a program whose sizes change ([`crate::work::fragbench`]).
//! Each phase allocates two and a half units, not five, as in measurements of the authors' code, so
//! that slow heaps end.

use crate::heaps::{Figures, Heap, Refused, Slots, Task, space};
use crate::work::fragbench::{ROWS, Row, Sizes};
use craton_lab::rng::Rng;
use std::time::Instant;

pub const UNIT: u64 = 64 << 20;
/// Of a unit, for Before and After each.
const HALVES: u64 = 5;
const LOOK: u64 = 1024;
const MAINTAIN_MS: u64 = 50;

pub fn run<H: Heap>(task: &Task, heap: &H, row: usize) -> Result<Figures, Refused> {
    let Row { before, delete, after } = ROWS[row];
    let unit = task.of(UNIT);
    let slots = Slots::new(heap, 0, unit / u64::from(before.0.min(after.0)) + 2)?;
    let free = (0..slots.count() as u32).rev().collect();
    let (rng, start) = (Rng::new(task.seed, row as u64), Instant::now());
    let empty = (0, 0, 0, 0);
    let (live_bytes, operations, maintained_ms, peak) = empty;
    let mut load = Fragments {
        heap,
        task,
        slots,
        free,
        live: Vec::new(),
        rng,
        start,
        unit,
        live_bytes,
        operations,
        maintained_ms,
        peak,
    };
    load.allocate(before)?;
    load.delete(delete)?;
    load.allocate(after)?;
    load.figures()
}

/// Slot and size.
type Live = (u32, u32);

struct Fragments<'a, H> {
    heap: &'a H,
    task: &'a Task,
    slots: Slots,
    free: Vec<u32>,
    live: Vec<Live>,
    rng: Rng,
    start: Instant,
    unit: u64,
    live_bytes: u64,
    operations: u64,
    maintained_ms: u64,
    peak: u64,
}

impl<H: Heap> Fragments<'_, H> {
    fn allocate(&mut self, (least, most): Sizes) -> Result<(), Refused> {
        let mut allocated = 0;
        while allocated < self.unit * HALVES / 2 {
            let bytes = least + self.rng.below(most - least + 1);
            while self.live_bytes + u64::from(bytes) > self.unit && !self.live.is_empty() {
                self.free_any()?;
            }
            let slot = self.free.pop().ok_or(Refused)?;
            let at = self.heap.alloc(self.slots.at(slot.into()), bytes.into())?;
            self.heap.store(at, allocated);
            self.live.push((slot, bytes));
            self.live_bytes += u64::from(bytes);
            allocated += u64::from(bytes);
            self.look();
        }
        Ok(())
    }

    fn delete(&mut self, percent: u32) -> Result<(), Refused> {
        (0..self.live.len() as u64 * u64::from(percent) / 100).try_for_each(|_| self.free_any())
    }

    fn free_any(&mut self) -> Result<(), Refused> {
        let any = self.rng.below(self.live.len() as u32) as usize;
        let (slot, bytes) = self.live.swap_remove(any);
        self.heap.free(self.slots.at(slot.into()))?;
        self.free.push(slot);
        self.live_bytes -= u64::from(bytes);
        self.look();
        Ok(())
    }

    fn look(&mut self) {
        self.operations += 1;
        if self.operations.is_multiple_of(LOOK) {
            let now_ms = self.start.elapsed().as_millis() as u64;
            if now_ms >= self.maintained_ms + MAINTAIN_MS {
                self.heap.maintain(now_ms);
                self.maintained_ms = now_ms;
            }
            self.peak = self.peak.max(self.space());
        }
    }

    fn space(&self) -> u64 {
        space::backed(&self.task.file()).saturating_sub(self.slots.bytes())
    }

    fn figures(self) -> Result<Figures, Refused> {
        let ns = self.start.elapsed().as_secs_f64() * 1e9;
        let (end, slabs) = (self.space(), self.heap.slabs());
        let mut figures: Figures = [
            ("ns_per_op", ns / self.operations as f64),
            ("peak_bytes", self.peak.max(end) as f64),
            ("end_bytes", end as f64),
            ("live_bytes", self.unit as f64),
            ("peak_per_live", self.peak.max(end) as f64 / self.unit as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        if !slabs.is_empty() {
            let share = |from: f64, to: f64| {
                slabs.iter().filter(|used| (from..to).contains(*used)).count() as f64 / slabs.len() as f64
            };
            // As figure 15(b).
            for (name, from, to) in
                [("slabs_below_30", 0.0, 0.3), ("slabs_30_70", 0.3, 0.7), ("slabs_above_70", 0.7, 2.0)]
            {
                figures.insert(name.to_owned(), share(from, to));
            }
        }
        Ok(figures)
    }
}
