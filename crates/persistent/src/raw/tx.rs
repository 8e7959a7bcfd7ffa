//! Transactions: ranges changed by hand, and objects, together or not at all.

use super::RawHeap;
use crate::error::Error;
use crate::media::{AnyTx, each};
use craton_pheap::{Offset, Reserved, Slot};

/// A transaction. If dropped, it is undone.
pub struct RawTx<'a> {
    raw: &'a RawHeap,
    /// `None` after the end.
    tx: Option<AnyTx<'a>>,
}

impl RawHeap {
    /// Begins a transaction. The heap allows as many at once as it has lanes.
    pub fn begin(&self) -> Result<RawTx<'_>, Error> {
        let _storing = self.storing();
        Ok(RawTx { raw: self, tx: Some(self.heap.begin()?) })
    }
}

/// Runs code for the transaction, which is open.
macro_rules! open {
    ($self:ident, $tx:ident => $body:expr) => {{
        let _storing = $self.raw.storing();
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

    /// Saves a range and changes it.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.snapshot(at, bytes.len() as u64)?;
        self.raw.write(at, bytes)
    }

    /// Allocates an object, which the slot holds once the transaction commits.
    pub fn alloc(&mut self, slot: Slot, size: u64) -> Result<Offset, Error> {
        open!(self, tx => tx.alloc(slot, size))
    }

    /// Links a reserved object at the commit.
    pub fn publish(&mut self, slot: Slot, reserved: Reserved) {
        note!(self, tx => tx.publish(slot, reserved));
    }

    /// Frees the slot's object at the commit, and stores a value in the slot.
    pub fn free(&mut self, slot: Slot, value: u64) {
        note!(self, tx => tx.free_and_set(slot, value));
    }

    /// Stores a value in a slot at the commit.
    pub fn set(&mut self, slot: Slot, value: u64) {
        note!(self, tx => tx.set(slot, value));
    }

    /// Makes all changes durable, or none.
    pub fn commit(mut self) -> Result<(), Error> {
        let _storing = self.raw.storing();
        match self.tx.take() {
            Some(tx) => Ok(each!(AnyTx, tx, tx => tx.commit())?),
            None => Err(Error::Null),
        }
    }
}

impl Drop for RawTx<'_> {
    fn drop(&mut self) {
        // Only an open one stores, and takes the lock: a commit holds it already.
        if let Some(tx) = self.tx.take() {
            let _storing = self.raw.storing();
            drop(tx);
        }
    }
}
