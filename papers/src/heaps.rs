//! Persistent heaps under the loads of NVAlloc §6 (docs/experiments.md): [`measure`] makes a heap
//! in a file, runs a [`Task`], and returns the figures. Space is the file's bytes with backing.

mod count;
mod craton;
pub mod load;
mod nvalloc;
mod perform;
mod pmdk;
mod race;
mod space;
mod task;

pub use count::Count;
pub use perform::measure;
pub use task::{Figures, Kind, Load, Mode, Task};

use craton_kv::Store;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// As a [`Store`] it serves the tree, whose slot has 8 bytes, and batches.
pub trait Heap: Store + Sized {
    /// A slot holds the place of an object.
    const SLOT_BYTES: u64;

    /// Zeroed; `number` is below [`ROOTS`].
    fn table(&self, number: u64, bytes: u64) -> Result<u64, Refused>;

    fn root(&self, number: u64) -> u64;

    /// Also stores its place in the slot, as one step; returns it.
    fn alloc(&self, slot: u64, bytes: u64) -> Result<u64, Refused>;

    /// Also clears the slot, as one step.
    fn free(&self, slot: u64) -> Result<(), Refused>;

    /// The slot's object; 0: none.
    fn holds(&self, slot: u64) -> u64;

    fn tree_slot(&self) -> u64;

    /// Where the heap counts.
    fn count(&self) -> Option<&dyn Count>;

    /// The used part of each, where known.
    fn slabs(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Of the last refusal.
    fn why(&self) -> String;
}

pub const ROOTS: u64 = 62;

#[derive(Clone, Copy, Debug)]
pub struct Slots {
    at: u64,
    stride: u64,
    count: u64,
}

/// Between slots of heaps that count: no flush may hit another slot's line.
const APART: u64 = 64;

impl Slots {
    pub fn new<H: Heap>(heap: &H, number: u64, count: u64) -> Result<Self, Refused> {
        let stride = if heap.count().is_some() { APART } else { H::SLOT_BYTES };
        Ok(Self { at: heap.table(number, count * stride)?, stride, count })
    }

    #[inline]
    pub fn at(&self, slot: u64) -> u64 {
        self.at + slot * self.stride
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn bytes(&self) -> u64 {
        self.count * self.stride
    }

    pub fn contains(&self, at: u64) -> bool {
        (self.at..self.at + self.bytes()).contains(&at)
    }
}
