use crate::error::Error;
use crate::heap::{PersistentHeap, slot_of};
use crate::pointer::{PPtr, Slot};
use std::marker::PhantomData;

/// An object that no crash keeps until it is published; dropped, it is freed.
pub struct Reserved<'a, T: ?Sized> {
    heap: &'a PersistentHeap,
    /// `None` once published.
    object: Option<craton_pheap::Reserved>,
    at: u64,
    to: PhantomData<PPtr<T>>,
}

impl<'a, T: ?Sized> Reserved<'a, T> {
    pub(crate) fn new(heap: &'a PersistentHeap, bytes: u64) -> Result<Self, Error> {
        let object = heap.raw().reserve(bytes)?;
        let at = object.at().0;
        Ok(Self { heap, object: Some(object), at, to: PhantomData })
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub fn pointer(&self) -> PPtr<T> {
        PPtr::at_offset(self.at)
    }

    pub(crate) fn take(&mut self) -> Option<craton_pheap::Reserved> {
        self.object.take()
    }

    /// Makes the object durable, and stores its pointer in the slot. After an error it is free.
    pub fn publish(mut self, slot: Slot<T>) -> Result<PPtr<T>, Error> {
        if let Some(object) = self.take() {
            self.heap.raw().publish(slot_of(slot), object)?;
        }
        Ok(self.pointer())
    }

    /// Likewise, and frees the slot's object.
    pub fn replace(mut self, slot: Slot<T>) -> Result<PPtr<T>, Error> {
        if let Some(object) = self.take() {
            self.heap.raw().replace(slot_of(slot), object)?;
        }
        Ok(self.pointer())
    }
}

impl<T: ?Sized> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        if let Some(object) = self.take() {
            self.heap.raw().cancel(object);
        }
    }
}
