use super::{Offset, RawHeap};
use crate::error::Error;
use std::fmt;

/// An object that no crash keeps until it is published; dropped, it is freed in its heap.
#[must_use]
pub struct Reserved<'a> {
    heap: &'a RawHeap,
    /// `None` once published.
    object: Option<craton_pheap::Reserved>,
    at: Offset,
}

impl<'a> Reserved<'a> {
    pub(super) fn new(heap: &'a RawHeap, object: craton_pheap::Reserved) -> Self {
        let at = object.at();
        Self { heap, object: Some(object), at }
    }

    pub fn at(&self) -> Offset {
        self.at
    }

    /// The bytes that were requested.
    pub fn size(&self) -> u64 {
        self.object.as_ref().map_or(0, craton_pheap::Reserved::size)
    }

    pub fn heap(&self) -> &'a RawHeap {
        self.heap
    }

    /// Offsets of one heap mean nothing in another.
    pub(crate) fn check_heap(&self, heap: &RawHeap) -> Result<(), Error> {
        if std::ptr::eq(self.heap, heap) { Ok(()) } else { Err(Error::OtherHeap) }
    }

    /// To be published in this heap. After an error the object is free in its own.
    pub(super) fn take_for(mut self, heap: &RawHeap) -> Result<craton_pheap::Reserved, Error> {
        self.check_heap(heap)?;
        // Only this call and the drop take it.
        self.object.take().ok_or(Error::Null)
    }
}

impl fmt::Debug for Reserved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.size(), self.at.0)
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            self.heap.cancel(object);
        }
    }
}
