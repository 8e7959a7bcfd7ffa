//! Values and objects that change together.

use crate::error::Error;
use crate::heap::{PersistentHeap, slot_of};
use crate::persist::{Persist, with_buffer};
use crate::pointer::{PPtr, Slot};
use crate::raw::RawTx;
use crate::reserved::Reserved;

/// Inside [`PersistentHeap::transaction`]. Values change at once; slots change at the commit, each
/// at most once, and at most 62 of them.
pub struct Transaction<'a> {
    heap: &'a PersistentHeap,
    tx: RawTx<'a>,
    /// The first refusal, for the commit.
    refused: Result<(), Error>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn begin(heap: &'a PersistentHeap) -> Result<Self, Error> {
        Ok(Self { heap, tx: heap.raw().begin()?, refused: Ok(()) })
    }

    pub(crate) fn commit(self) -> Result<(), Error> {
        self.refused?;
        self.tx.commit()
    }

    /// Changes a value without pointers; undone if the transaction does not commit.
    pub fn set<T: Persist>(&mut self, at: PPtr<T>, value: &T) -> Result<(), Error> {
        const { assert!(!T::HAS_POINTERS, "`link` changes a pointer") };
        with_buffer::<T, _>(|buffer| {
            value.encode(buffer);
            self.tx.write(at.offset(), buffer)
        })
    }

    pub fn alloc_to<T: Persist>(&mut self, slot: Slot<T>, value: &T) -> Result<PPtr<T>, Error> {
        let reserved = self.heap.reserve(value)?;
        Ok(self.publish(slot, reserved))
    }

    pub fn alloc_array_to<T: Persist>(&mut self, slot: Slot<[T]>, values: &[T]) -> Result<PPtr<[T]>, Error> {
        let reserved = self.heap.reserve_array(values)?;
        Ok(self.publish(slot, reserved))
    }

    /// Links an object of [`PersistentHeap::reserve`] or [`PersistentHeap::reserve_array`]. The
    /// commit refuses one of another heap.
    pub fn publish<T: ?Sized>(&mut self, slot: Slot<T>, reserved: Reserved<'a, T>) -> PPtr<T> {
        let pointer = reserved.pointer();
        let published = self.tx.publish(slot_of(slot), reserved.into_object());
        self.refused = self.refused.and(published);
        pointer
    }

    pub fn free_from<T: ?Sized>(&mut self, slot: Slot<T>) {
        self.free_and_link(slot, PPtr::NULL);
    }

    pub fn free_and_link<T: ?Sized>(&mut self, slot: Slot<T>, pointer: PPtr<T>) {
        self.tx.free(slot_of(slot), pointer.offset());
    }

    pub fn link<T: ?Sized>(&mut self, slot: Slot<T>, pointer: PPtr<T>) {
        self.tx.set(slot_of(slot), pointer.offset());
    }
}
