//! Contents of objects, copied by atomics: a concurrent change may mix old and new words.

use super::RawHeap;
use crate::error::Error;
use crate::media::{AnyHeap, each};
use craton_base::atomic::Ordering;
use craton_base::{LINE_BYTES, Medium};

impl RawHeap {
    #[inline]
    fn check_range(&self, at: u64, len: u64, least: u64) -> Result<(), Error> {
        let end = at.checked_add(len).filter(|end| at >= least && *end <= self.len());
        match end {
            Some(_) => Ok(()),
            None if at == 0 => Err(Error::Null),
            None => Err(craton_pheap::Error::OutOfRange { at, len }.into()),
        }
    }

    #[inline]
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        self.check_range(at, into.len() as u64, 1)?;
        each!(AnyHeap, &self.heap, heap => copy_out(heap.medium(), at, into));
        Ok(())
    }

    /// Reads the word at a multiple of 8.
    #[inline]
    pub fn load(&self, at: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    #[inline]
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check_range(at, bytes.len() as u64, self.data)?;
        let _storing = self.storing()?;
        each!(AnyHeap, &self.heap, heap => copy_in(heap.medium(), at, bytes));
        Ok(())
    }

    /// Makes bytes durable where lines are written back.
    pub fn persist(&self, at: u64, len: u64) -> Result<(), Error> {
        self.flush(at, len)?;
        self.fence();
        Ok(())
    }

    pub fn flush(&self, at: u64, len: u64) -> Result<(), Error> {
        self.check_range(at, len, 1)?;
        if let AnyHeap::Cached(_) | AnyHeap::Disk(_) = self.heap {
            return Ok(());
        }
        each!(AnyHeap, &self.heap, heap => {
            let first = at / LINE_BYTES * LINE_BYTES;
            (first..at + len).step_by(LINE_BYTES as usize).for_each(|line| heap.medium().flush(line));
        });
        Ok(())
    }

    pub fn fence(&self) {
        each!(AnyHeap, &self.heap, heap => heap.medium().fence());
    }
}

#[inline]
fn copy_out<M: Medium>(medium: &M, at: u64, into: &mut [u8]) {
    let (mut at, mut rest) = (at, into);
    while !rest.is_empty() {
        let skip = (at % 8) as usize;
        let whole = if skip == 0 { rest.len() / 8 } else { 0 };
        if whole > 0
            && let Some(words) = medium.words(at, whole)
        {
            for (word, to) in words.iter().zip(rest.as_chunks_mut::<8>().0) {
                // ORDERING: as below.
                *to = word.load(Ordering::Acquire).to_le_bytes();
            }
            (at, rest) = (at + 8 * whole as u64, &mut rest[8 * whole..]);
            continue;
        }
        let len = (8 - skip).min(rest.len());
        // ORDERING: pairs with the release in `Medium::store`: a pointer's object is initialised.
        let word = medium.word(at - skip as u64).load(Ordering::Acquire).to_le_bytes();
        rest[..len].copy_from_slice(&word[skip..skip + len]);
        (at, rest) = (at + len as u64, &mut rest[len..]);
    }
}

#[inline]
fn copy_in<M: Medium>(medium: &M, at: u64, bytes: &[u8]) {
    let (mut at, mut rest) = (at, bytes);
    while !rest.is_empty() {
        let skip = (at % 8) as usize;
        if skip == 0 && rest.len() >= 8 {
            let (words, end) = rest.as_chunks::<8>();
            for (at, word) in (at..).step_by(8).zip(words) {
                medium.store(at, u64::from_le_bytes(*word));
            }
            (at, rest) = (at + 8 * words.len() as u64, end);
            continue;
        }
        let len = (8 - skip).min(rest.len());
        let (mut value, mut mask) = ([0; 8], [0; 8]);
        value[skip..skip + len].copy_from_slice(&rest[..len]);
        mask[skip..skip + len].fill(0xff);
        let (value, mask) = (u64::from_le_bytes(value), u64::from_le_bytes(mask));
        // Other threads may store to the rest of the word.
        medium.update(at - skip as u64, value, mask & !value);
        (at, rest) = (at + len as u64, &rest[len..]);
    }
}
