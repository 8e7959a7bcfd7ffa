//! Fragmentation when the sizes of a program change.
//!
//! Before allocates five units of objects of one distribution of sizes, Delete frees a random part
//! of the live ones, After allocates five units of another distribution. Random frees keep the live
//! data within one unit.
//!
//! **From.** NVAlloc §3.2, Table 1, after RAMCloud (Rumble et al., FAST 2014). The paper's unit is
//! 1 GB.

use super::Load;
use super::block::Filled;
use craton_lab::rng::Rng;

/// Least and most, inclusive, each as likely.
pub(crate) type Sizes = (u32, u32);

#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub before: Sizes,
    /// In percent.
    pub delete: u32,
    pub after: Sizes,
}

pub(crate) const ROWS: [Row; 4] = [
    Row { before: (100, 100), delete: 90, after: (130, 130) },
    Row { before: (100, 150), delete: 0, after: (200, 250) },
    Row { before: (100, 150), delete: 90, after: (200, 250) },
    Row { before: (100, 200), delete: 50, after: (1000, 2000) },
];

/// At the full load.
const UNIT: u64 = 64 << 20;
const ALLOCATED: u64 = 5;

/// At which the unit is the paper's.
pub const PAPER_PERCENT: u64 = 1600;

pub const NAMES: [&str; 4] = ["fragbench-w1", "fragbench-w2", "fragbench-w3", "fragbench-w4"];

/// Bytes of the live objects at the peak, and of their list: Before, with the smaller sizes, has
/// the most objects.
pub fn at_peak(name: &str, load: &Load) -> Option<(u64, u64)> {
    let row = row(name)?;
    let unit = load.of(UNIT);
    let objects = unit * 2 / u64::from(row.before.0 + row.before.1);
    Some((unit, objects * size_of::<Filled>() as u64))
}

fn row(name: &str) -> Option<&'static Row> {
    Some(&ROWS[NAMES.iter().position(|n| *n == name)?])
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub checksum: u64,
    pub peak_bytes: u64,
    /// After Delete.
    pub kept_bytes: u64,
    pub end_bytes: u64,
    /// Of the list of live objects, which never grows.
    pub list_bytes: u64,
}

pub(super) fn run(row: &Row, load: &Load) -> Outcome {
    let mut heap = Heap::new(row, load);
    heap.allocate(row.before);
    heap.delete(row.delete);
    heap.outcome.kept_bytes = heap.live_bytes;
    heap.allocate(row.after);
    heap.outcome.end_bytes = heap.live_bytes;
    while !heap.live.is_empty() {
        heap.free(heap.live.len() - 1);
    }
    heap.outcome
}

struct Heap {
    rng: Rng,
    unit_bytes: u64,
    live: Vec<Filled>,
    live_bytes: u64,
    outcome: Outcome,
}

impl Heap {
    fn new(row: &Row, load: &Load) -> Self {
        let unit_bytes = load.of(UNIT);
        let smallest = u64::from(row.before.0.min(row.after.0));
        let live = Vec::with_capacity((unit_bytes / smallest + 1) as usize);
        let list_bytes = (live.capacity() * size_of::<Filled>()) as u64;
        let outcome = Outcome { list_bytes, ..Outcome::default() };
        Self { rng: Rng::new(load.seed, 0), unit_bytes, live, live_bytes: 0, outcome }
    }

    fn allocate(&mut self, (smallest, largest): Sizes) {
        let mut allocated = 0;
        while allocated < ALLOCATED * self.unit_bytes {
            let bytes = u64::from(smallest + self.rng.below(largest - smallest + 1));
            while self.live_bytes + bytes > self.unit_bytes && !self.live.is_empty() {
                self.free_any();
            }
            self.live.push(Filled::new(bytes as usize, self.rng.next()));
            self.live_bytes += bytes;
            self.outcome.peak_bytes = self.outcome.peak_bytes.max(self.live_bytes);
            allocated += bytes;
        }
    }

    fn delete(&mut self, percent: u32) {
        for _ in 0..self.live.len() as u64 * u64::from(percent) / 100 {
            self.free_any();
        }
    }

    fn free_any(&mut self) {
        let any = self.rng.below(u32::try_from(self.live.len()).unwrap_or(u32::MAX));
        self.free(any as usize);
    }

    fn free(&mut self, i: usize) {
        let object = self.live.swap_remove(i);
        self.live_bytes -= object.len() as u64;
        self.outcome.checksum = self.outcome.checksum.wrapping_mul(31).wrapping_add(object.sum());
    }
}

#[cfg(test)]
mod tests;
