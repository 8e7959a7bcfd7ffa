//! Arrays: a word with the number of values, then the values.

use crate::error::Error;
use crate::heap::PersistentHeap;
use crate::persist::{Persist, bytes_of, with_bytes};
use crate::pointer::{PPtr, Slot};
use crate::reserved::Reserved;

const HEAD: u64 = 8;
/// Bytes copied at once.
const COPIED: u64 = 4096;

impl PersistentHeap {
    /// Makes an array that no crash keeps until it is published.
    pub fn reserve_array<T: Persist>(&self, values: &[T]) -> Result<Reserved<'_, [T]>, Error> {
        let bytes = (values.len() as u64).saturating_mul(T::BYTES).saturating_add(HEAD);
        let reserved = Reserved::new(self, bytes)?;
        self.write(PPtr::at_offset(reserved.at()), &(values.len() as u64))?;
        let (each, step) = (T::BYTES as usize, values_at_once::<T>().min(values.len()));
        with_bytes(step * each, |buffer| {
            let mut at = reserved.at() + HEAD;
            for values in values.chunks(step.max(1)) {
                let bytes = &mut buffer[..values.len() * each];
                bytes.fill(0);
                values.iter().zip(bytes.chunks_exact_mut(each.max(1))).for_each(|(value, to)| value.encode(to));
                self.raw().write(at, bytes)?;
                at += bytes.len() as u64;
            }
            Ok(reserved)
        })
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
        let (len, each) = (self.len_of(array)? as usize, T::BYTES as usize);
        if each == 0 {
            return Ok((0..len).map(|_| T::decode(&[])).collect());
        }
        let (mut values, step) = (Vec::with_capacity(len), values_at_once::<T>().min(len));
        with_bytes(step * each, |buffer| {
            let mut at = array.offset() + HEAD;
            while values.len() < len {
                let bytes = &mut buffer[..step.min(len - values.len()) * each];
                self.raw().read(at, bytes)?;
                values.extend(bytes.chunks_exact(each).map(T::decode));
                at += bytes.len() as u64;
            }
            Ok(values)
        })
    }
}

/// Whole words, if more than one value.
const fn values_at_once<T: Persist>() -> usize {
    let most = COPIED / bytes_of::<T>() / 8 * 8;
    if most == 0 { 1 } else { most as usize }
}
