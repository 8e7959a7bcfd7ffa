//! A heap by offsets and bytes, below [`PersistentHeap`](crate::PersistentHeap) and the functions
//! for C. Reads must lie inside the heap, and writes inside its data.
//!
//! **Threads.** With sync points, a call that stores holds a shared lock, and
//! [`sync`](RawHeap::sync) an exclusive one while it copies the changed pages. Callers that store
//! by [`base`](RawHeap::base) must not run beside `sync`.
//! **Processes.** A forked child shares the file, but not the rest of the state: its calls that
//! store are refused, and its drops leave the file as it is.

mod bytes;
mod change;
mod reserved;
mod tx;

use crate::error::Error;
use crate::file::{self, Opened};
use crate::media::{AnyHeap, each};
use crate::options::HeapOptions;
use craton_base::{Medium, Promise};
use craton_os::DiskFile;
use craton_os::persistent_file::FileError;
use craton_os::thread::{count_forks, forks};
use craton_pheap::{Heap, Identity, Model, Report, Root, Stats};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

pub use change::Change;
pub use craton_pheap::{Offset, Slot};
pub use reserved::Reserved;
pub use tx::RawTx;

/// [`PersistentHeap`](crate::PersistentHeap)'s calls, without types.
pub struct RawHeap {
    heap: AnyHeap,
    promise: Promise,
    base: usize,
    /// Where the data begins, which callers may write.
    data: u64,
    /// Shared to store, exclusive to make a sync point.
    gate: RwLock<()>,
    opened: Instant,
    /// Of the process that opened the heap.
    forks: u32,
}

impl RawHeap {
    pub fn create(path: &Path, options: &HeapOptions) -> Result<(Self, Report), Error> {
        Self::of_opened(file::create(path, options)?)
    }

    pub fn open(path: &Path, options: &HeapOptions) -> Result<(Self, Report), Error> {
        Self::of_opened(file::open(path, options)?)
    }

    pub fn open_or_create(path: &Path, options: &HeapOptions) -> Result<(Self, Report), Error> {
        if path.symlink_metadata().is_err() {
            match file::create(path, options) {
                // Another process was first.
                Err(Error::File(FileError::Exists)) => {}
                made => return Self::of_opened(made?),
            }
        }
        Self::open(path, options)
    }

    fn of_opened(opened: Opened) -> Result<(Self, Report), Error> {
        let Opened { heap, promise, base, report } = opened;
        Ok((Self::of(heap, promise, base)?, report))
    }

    pub(crate) fn of(heap: AnyHeap, promise: Promise, base: usize) -> Result<Self, Error> {
        let data = each!(AnyHeap, &heap, heap => {
            // A range once checked stays in the file: another thread may read there, by a stale
            // pointer.
            heap.keep_length();
            Identity::read(heap.medium())?.data
        });
        count_forks();
        let (gate, opened, forks) = (RwLock::new(()), Instant::now(), forks());
        Ok(Self { heap, promise, base, data, gate, opened, forks })
    }

    /// In a forked child, only the child's mapping ends.
    pub fn close(self) -> Result<(), Error> {
        self.check_process()?;
        self.heap.close()
    }

    /// Refuses a forked child.
    #[inline]
    pub fn check_process(&self) -> Result<(), Error> {
        if self.forks == forks() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Held while a call stores.
    #[inline]
    pub(crate) fn storing(&self) -> Result<Option<RwLockReadGuard<'_, ()>>, Error> {
        self.check_process()?;
        let has_sync_points = matches!(self.heap, AnyHeap::Disk(_));
        Ok(has_sync_points.then(|| self.gate.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// On persistent memory, waits for the lines of slots changed by hand.
    pub fn sync(&self) -> Result<(), Error> {
        self.check_process()?;
        match &self.heap {
            AnyHeap::Disk(heap) => self.sync_disk(heap),
            _ if self.promise == Promise::ProcessCrash => Err(Error::NoSyncPoints),
            heap => {
                each!(AnyHeap, heap, heap => heap.settle());
                Ok(())
            }
        }
    }

    fn sync_disk(&self, heap: &Heap<DiskFile>) -> Result<(), Error> {
        let medium = heap.medium();
        let pause = || self.gate.write().unwrap_or_else(PoisonError::into_inner);
        medium.sync(pause)?;
        Ok(medium.checkpoint_if_due(pause)?)
    }

    /// The file keeps its length until the heap is closed.
    pub fn maintain(&self) {
        self.maintain_at(self.opened.elapsed().as_millis() as u64);
    }

    fn maintain_at(&self, now_ms: u64) {
        let Ok(_storing) = self.storing() else { return };
        each!(AnyHeap, &self.heap, heap => heap.maintain(now_ms));
    }

    pub fn promise(&self) -> Promise {
        self.promise
    }

    pub fn model(&self) -> Model {
        each!(AnyHeap, &self.heap, heap => heap.model())
    }

    pub fn uuid(&self) -> u128 {
        each!(AnyHeap, &self.heap, heap => heap.uuid())
    }

    /// The address of offset 0; 0 in simulations.
    pub fn base(&self) -> usize {
        self.base
    }

    #[inline]
    pub fn len(&self) -> u64 {
        each!(AnyHeap, &self.heap, heap => heap.medium().len())
    }

    /// `false`: no heap is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn root(&self, name: &[u8]) -> Result<Root, Error> {
        Ok(each!(AnyHeap, &self.heap, heap => heap.root(name))?)
    }

    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        Ok(each!(AnyHeap, &self.heap, heap => heap.roots())?)
    }

    pub fn add_root(&self, name: &[u8], tag: u64) -> Result<Slot, Error> {
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.add_root(name, tag))?)
    }

    pub fn remove_root(&self, name: &[u8]) -> Result<(), Error> {
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.remove_root(name))?)
    }

    /// The object is not initialised.
    #[inline]
    pub fn alloc_to(&self, slot: Slot, size: u64) -> Result<Offset, Error> {
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.alloc_to(slot, size))?)
    }

    #[inline]
    pub fn free_from(&self, slot: Slot) -> Result<(), Error> {
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.free_from(slot))?)
    }

    pub fn realloc(&self, slot: Slot, size: u64) -> Result<Offset, Error> {
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.realloc(slot, size))?)
    }

    pub fn set(&self, slot: Slot, value: u64) -> Result<(), Error> {
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.set(slot, value))?)
    }

    pub fn reserve(&self, size: u64) -> Result<Reserved<'_>, Error> {
        let _storing = self.storing()?;
        Ok(Reserved::new(self, each!(AnyHeap, &self.heap, heap => heap.reserve(size))?))
    }

    fn cancel(&self, object: craton_pheap::Reserved) {
        let Ok(_storing) = self.storing() else { return };
        each!(AnyHeap, &self.heap, heap => heap.cancel(object));
    }

    /// After an error the object is free. Refuses an object of another heap, as all calls do.
    pub fn publish(&self, slot: Slot, reserved: Reserved<'_>) -> Result<(), Error> {
        let object = reserved.take_for(self)?;
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.publish([(slot, object)]))?)
    }

    pub fn replace(&self, slot: Slot, reserved: Reserved<'_>) -> Result<(), Error> {
        let object = reserved.take_for(self)?;
        let _storing = self.storing()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.replace(slot, object))?)
    }

    pub fn size_of(&self, object: Offset) -> Result<u64, Error> {
        Ok(each!(AnyHeap, &self.heap, heap => heap.size_of(object))?)
    }

    pub fn changes_most(&self) -> usize {
        each!(AnyHeap, &self.heap, heap => heap.parts_most())
    }

    pub fn stats(&self) -> Stats {
        each!(AnyHeap, &self.heap, heap => heap.stats())
    }

    pub fn check(&self) -> Result<(), Error> {
        self.check_process()?;
        Ok(each!(AnyHeap, &self.heap, heap => heap.verify())?)
    }
}

#[cfg(test)]
mod tests;
