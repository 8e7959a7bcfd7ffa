use crate::error::Error;
use crate::heap::{PersistentHeap, slot_of};
use crate::pointer::{PPtr, Slot};
use crate::raw;
use std::marker::PhantomData;

/// An object that no crash keeps until it is published in its heap; dropped, it is freed.
pub struct Reserved<'a, T: ?Sized> {
    object: raw::Reserved<'a>,
    to: PhantomData<PPtr<T>>,
}

impl<'a, T: ?Sized> Reserved<'a, T> {
    pub(crate) fn new(heap: &'a PersistentHeap, bytes: u64) -> Result<Self, Error> {
        Ok(Self { object: heap.raw().reserve(bytes)?, to: PhantomData })
    }

    pub(crate) fn at(&self) -> u64 {
        self.object.at().0
    }

    pub fn pointer(&self) -> PPtr<T> {
        PPtr::at_offset(self.at())
    }

    pub(crate) fn into_object(self) -> raw::Reserved<'a> {
        self.object
    }

    /// Makes the object durable, and stores its pointer in the slot. After an error it is free.
    pub fn publish(self, slot: Slot<T>) -> Result<PPtr<T>, Error> {
        let pointer = self.pointer();
        self.object.heap().publish(slot_of(slot), self.object)?;
        Ok(pointer)
    }

    /// Likewise, and frees the slot's object.
    pub fn replace(self, slot: Slot<T>) -> Result<PPtr<T>, Error> {
        let pointer = self.pointer();
        self.object.heap().replace(slot_of(slot), self.object)?;
        Ok(pointer)
    }
}
