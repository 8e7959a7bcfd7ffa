//! Persistent heaps under the loads of NVAlloc §6.
//!
//! **What.** [`Heap`] is a persistent heap as loads see it: Craton's with each model, and PMDK's
//! libpmemobj where it is installed. [`measure`] does one [`Task`] in this process: it makes a heap
//! in a file, runs a load of [`load`], and returns the figures. `craton-heaps` prints them.
//!
//! **From.** NVAlloc §6.1. Objects hang on slots of persistent tables; each gets one store of 8
//! bytes, which is not flushed.
//!
//! **State.** [`Mode`] says whether lines are flushed. Counts come from a medium that counts
//! (Craton), or from a library in libpmem's place (PMDK).
//!
//! **Units.** Times in ns or ms as the names say; space in bytes of the file that have backing.
//!
//! **Failure.** A refused request ends the run, with the heap's reason.

mod count;
mod craton;
pub mod load;
mod perform;
mod pmdk;
mod race;
mod space;
mod task;

pub use count::Count;
pub use perform::measure;
pub use task::{Figures, Kind, Load, Mode, Task};

use craton_kv::Store;

/// [`Heap::why`] has the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused;

/// As a [`Store`] it also serves the tree, and batches.
pub trait Heap: Store + Sized {
    /// A slot holds the place of an object.
    const SLOT_BYTES: u64;

    /// Allocates a zeroed object for root `number`, below [`ROOTS`].
    fn table(&self, number: u64, bytes: u64) -> Result<u64, Refused>;

    /// The slot that is root `number`.
    fn root(&self, number: u64) -> u64;

    /// Allocates an object and stores its place in the slot, as one step. Returns its offset.
    fn alloc(&self, slot: u64, bytes: u64) -> Result<u64, Refused>;

    /// Frees the slot's object and clears the slot, as one step.
    fn free(&self, slot: u64) -> Result<(), Refused>;

    /// The slot's object; 0: none.
    fn holds(&self, slot: u64) -> u64;

    /// A slot of 8 bytes for the tree.
    fn tree_slot(&self) -> u64;

    /// The application's timer calls it.
    fn maintain(&self, now_ms: u64) {
        let _ = now_ms;
    }

    /// Where the heap counts.
    fn count(&self) -> Option<&dyn Count>;

    /// The used part of each slab, where the heap knows it.
    fn slabs(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Of the last refusal.
    fn why(&self) -> String;
}

/// Roots that every heap has.
pub const ROOTS: u64 = 62;

#[derive(Clone, Copy, Debug)]
pub struct Slots {
    at: u64,
    stride: u64,
    count: u64,
}

/// Bytes between slots, where no flush of a slot may hit another slot's line.
const APART: u64 = 64;

impl Slots {
    /// Side by side; in heaps that count, a line apart.
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

    /// Whether an offset lies in the table.
    pub fn contains(&self, at: u64) -> bool {
        (self.at..self.at + self.bytes()).contains(&at)
    }
}
