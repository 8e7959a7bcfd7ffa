//! Contents of objects.

use crate::alloc::Found;
use crate::error::Error;
use crate::heap::{Heap, Offset};
use craton_base::{LINE_BYTES, Medium, Space};

impl<M: Medium + Space> Heap<M> {
    /// `at` is a multiple of 8.
    #[inline]
    pub fn read(&self, at: u64) -> u64 {
        self.load(at)
    }

    /// Stores a word `at` bytes after the object's beginning; [`persist`](Self::persist) makes it
    /// durable.
    #[inline]
    pub fn write(&self, object: Offset, at: u64, value: u64) {
        self.medium.store(object.0 + at, value);
    }

    /// Makes bytes of objects durable.
    pub fn persist(&self, at: u64, len: u64) -> Result<(), Error> {
        if at.checked_add(len).is_none_or(|end| end > self.medium.len()) {
            return Err(Error::OutOfRange { at, len });
        }
        self.flush_range(at, len);
        self.medium.fence();
        Ok(())
    }

    /// Durable with the next fence.
    pub(crate) fn flush_range(&self, at: u64, len: u64) {
        if M::FLUSHES {
            let mut line = at & !(LINE_BYTES - 1);
            while line < at + len {
                self.medium.flush(line);
                line += LINE_BYTES;
            }
        }
    }

    /// Rounds `len` up to words.
    pub(crate) fn copy(&self, from: u64, to: u64, len: u64) {
        for at in (0..len).step_by(8) {
            self.medium.store(to + at, self.load(from + at));
        }
    }

    pub(crate) fn room_of(&self, at: u64, found: &Found) -> Result<u64, Error> {
        match found {
            Found::Small { number, .. } => Ok(u64::from(self.classes[*number].size)),
            _ => self.size_of(Offset(at)),
        }
    }
}
