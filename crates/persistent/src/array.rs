//! Arrays: a word with the number of values, then the values.

use crate::error::Error;
use crate::heap::PersistentHeap;
use crate::persist::Persist;
use crate::pointer::{PPtr, Slot};
use crate::reserved::Reserved;

const HEAD: u64 = 8;

impl PersistentHeap {
    /// Makes an array that no crash keeps until it is published.
    pub fn reserve_array<T: Persist>(&self, values: &[T]) -> Result<Reserved<'_, [T]>, Error> {
        let reserved = Reserved::new(self, HEAD + values.len() as u64 * T::BYTES)?;
        self.write(PPtr::at_offset(reserved.at()), &(values.len() as u64))?;
        for (at, value) in (reserved.at() + HEAD..).step_by(T::BYTES.max(1) as usize).zip(values) {
            self.write(PPtr::at_offset(at), value)?;
        }
        Ok(reserved)
    }

    /// A crash leaves both object and pointer, or neither.
    pub fn alloc_array_to<T: Persist>(&self, slot: Slot<[T]>, values: &[T]) -> Result<PPtr<[T]>, Error> {
        self.reserve_array(values)?.publish(slot)
    }

    /// Frees the slot's array in the same step.
    pub fn replace_array<T: Persist>(&self, slot: Slot<[T]>, values: &[T]) -> Result<PPtr<[T]>, Error> {
        self.reserve_array(values)?.replace(slot)
    }

    pub fn len_of<T: Persist>(&self, array: PPtr<[T]>) -> Result<u64, Error> {
        let len = self.raw().load(array.offset())?;
        // A damaged length must not lead beyond the heap.
        let most = self.raw().len().saturating_sub(array.offset() + HEAD) / T::BYTES.max(1);
        match len <= most {
            true => Ok(len),
            false => Err(Error::Index { index: len, len: most }),
        }
    }

    pub fn element<T: Persist>(&self, array: PPtr<[T]>, index: u64) -> Result<PPtr<T>, Error> {
        let len = self.len_of(array)?;
        match index < len {
            true => Ok(PPtr::at_offset(array.offset() + HEAD + index * T::BYTES)),
            false => Err(Error::Index { index, len }),
        }
    }

    pub fn values<T: Persist>(&self, array: PPtr<[T]>) -> Result<Vec<T>, Error> {
        let bytes = T::BYTES as usize;
        let mut buffer = vec![0; self.len_of(array)? as usize * bytes];
        self.raw().read(array.offset() + HEAD, &mut buffer)?;
        Ok(buffer.chunks_exact(bytes.max(1)).map(T::decode).collect())
    }
}
