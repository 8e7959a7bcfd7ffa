//! Transactions on ranges and objects.

use super::{RawHeap, Reserved};
use crate::error::Error;
use crate::media::{AnyTx, each};
use craton_pheap::{Offset, Slot};

/// A transaction. Dropped, it is undone.
pub struct RawTx<'a> {
    raw: &'a RawHeap,
    /// `None` after the end.
    tx: Option<AnyTx<'a>>,
}

impl RawHeap {
    /// As many at once as the heap has lanes.
    pub fn begin(&self) -> Result<RawTx<'_>, Error> {
        let _storing = self.storing()?;
        Ok(RawTx { raw: self, tx: Some(self.heap.begin()?) })
    }
}

macro_rules! open {
    ($self:ident, $tx:ident => $body:expr) => {{
        let _storing = $self.raw.storing()?;
        // Only `commit` and `drop` take it.
        let Some(tx) = &mut $self.tx else { return Err(Error::Null) };
        Ok(each!(AnyTx, tx, $tx => $body)?)
    }};
}

/// As [`open!`], for calls that cannot fail.
macro_rules! note {
    ($self:ident, $tx:ident => $body:expr) => {
        if let Some(tx) = &mut $self.tx {
            each!(AnyTx, tx, $tx => $body)
        }
    };
}

impl RawTx<'_> {
    /// Saves a range, so that it may be changed.
    pub fn snapshot(&mut self, at: u64, bytes: u64) -> Result<(), Error> {
        open!(self, tx => tx.snapshot(at, bytes))
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.snapshot(at, bytes.len() as u64)?;
        self.raw.write(at, bytes)
    }

    pub fn alloc(&mut self, slot: Slot, size: u64) -> Result<Offset, Error> {
        open!(self, tx => tx.alloc(slot, size))
    }

    /// Refuses an object of another heap, which is then free there.
    pub fn publish(&mut self, slot: Slot, reserved: Reserved<'_>) -> Result<(), Error> {
        let object = reserved.take_for(self.raw)?;
        note!(self, tx => tx.publish(slot, object));
        Ok(())
    }

    /// Frees the slot's object at the commit, and stores a value.
    pub fn free(&mut self, slot: Slot, value: u64) {
        note!(self, tx => tx.free_and_set(slot, value));
    }

    pub fn set(&mut self, slot: Slot, value: u64) {
        note!(self, tx => tx.set(slot, value));
    }

    pub fn commit(mut self) -> Result<(), Error> {
        let _storing = self.raw.storing()?;
        match self.tx.take() {
            Some(tx) => Ok(each!(AnyTx, tx, tx => tx.commit())?),
            None => Err(Error::Null),
        }
    }
}

impl Drop for RawTx<'_> {
    fn drop(&mut self) {
        // Only an open one takes the lock: a commit holds it.
        if let Some(tx) = self.tx.take() {
            match self.raw.storing() {
                Ok(_storing) => drop(tx),
                // The parent's.
                Err(_) => std::mem::forget(tx),
            }
        }
    }
}
