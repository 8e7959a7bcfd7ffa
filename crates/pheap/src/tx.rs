//! Transactions: ranges changed by hand, and objects, together or not at all (as PMDK's).
//!
//! [`Tx::snapshot`] copies a range to an undo buffer. `commit` makes the ranges durable; then one
//! batch links and frees objects and ends the transaction.
//! ```text
//! entry   number · offset · bytes · check · the words from there
//! ```
//! **Invariants.** *NT1* An entry is durable before its range changes. *NT2* The end of a
//! transaction is a line of the batch that links and frees its objects.
//!
//! **Cost.** A fence for each snapshot, two for the commit.

use crate::batch::{Part, Reserved};
use crate::error::Error;
use crate::heap::{Heap, Offset, Slot};
use crate::lane::header::{Header, check_word};
use crate::layout::{LANE_TX, LANE_TX_CHECK, LANE_UNDO, LANE_UNDO_CHECK, check_of};
use crate::state::Super;
use crate::sync::MutexGuard;
use craton_base::atomic::Ordering;
use craton_base::{LINE_BYTES, Medium, Space};
use std::sync::PoisonError;

const ENTRY_BYTES: u64 = 32;
const FIRST_BYTES: u64 = 4096;

/// Until it ends, only its calls may change its slots. A drop undoes it.
pub struct Tx<'a, M: Medium + Space> {
    heap: &'a Heap<M>,
    /// Has its header.
    lane: u32,
    number: u64,
    buffer: u64,
    room: u64,
    used: u64,
    ranges: Vec<(u64, u64)>,
    parts: Vec<Part>,
    open: bool,
}

fn entry_check<M: Medium>(medium: &M, number: u64, at: u64, bytes: u64, data: u64) -> u64 {
    let mut check = check_of(&[number, at, bytes, 0, 0, 0, 0, 0], number);
    for word in (data..data + bytes).step_by(8) {
        let value = medium.word(word).load(Ordering::Relaxed);
        check = check.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value;
    }
    check | 1
}

impl<M: Medium + Space> Heap<M> {
    /// At most as many at once as lanes.
    pub fn begin(&self) -> Result<Tx<'_, M>, Error> {
        let mut free = self.free_tx();
        let lane = free.0.pop().ok_or(Error::TooManyTransactions)?;
        free.1 += 1;
        let number = free.1;
        drop(free);
        let mut tx = Tx {
            heap: self,
            lane,
            number,
            buffer: self.load(self.places.lane_header(lane) + LANE_UNDO),
            room: 0,
            used: 0,
            ranges: Vec::new(),
            parts: Vec::new(),
            open: false,
        };
        tx.room = if tx.buffer == 0 { 0 } else { self.size_of(Offset(tx.buffer))? };
        Ok(tx)
    }

    fn free_tx(&self) -> MutexGuard<'_, (Vec<u32>, u64)> {
        self.no_tx.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn undo_buffers(&self) -> Vec<u64> {
        let buffers = (0..self.sup.lanes).map(|lane| self.load(self.places.lane_header(lane) + LANE_UNDO));
        buffers.filter(|at| *at != 0).collect()
    }
}

impl<M: Medium + Space> Tx<'_, M> {
    /// Saves `bytes` from `at`, rounded outwards to words, before they are changed.
    pub fn snapshot(&mut self, at: u64, bytes: u64) -> Result<(), Error> {
        let heap = self.heap;
        let end = at.checked_add(bytes).filter(|end| at >= heap.places.data() && *end <= heap.medium.len());
        let Some(end) = end.and_then(|end| end.checked_next_multiple_of(8)) else {
            return Err(Error::OutOfRange { at, len: bytes });
        };
        let at = at / 8 * 8;
        let bytes = end - at;
        if bytes == 0 {
            return Ok(());
        }
        self.grow(ENTRY_BYTES + bytes)?;
        let entry = self.buffer + self.used;
        let data = entry + ENTRY_BYTES;
        heap.copy(at, data, bytes);
        let check = entry_check(&heap.medium, self.number, at, bytes, data);
        for (i, word) in [self.number, at, bytes, check].into_iter().enumerate() {
            heap.medium.store(entry + 8 * i as u64, word);
        }
        heap.flush_range(entry, ENTRY_BYTES + bytes);
        if !self.open {
            let header = heap.places.lane_header(self.lane);
            // In this order: a line's words become durable in the order of their stores.
            heap.medium.store(header + LANE_TX_CHECK, check_word(heap.seed, header + LANE_TX, self.number));
            heap.medium.store(header + LANE_TX, self.number);
            heap.medium.flush(header + LANE_TX);
            self.open = true;
        }
        heap.medium.fence();
        self.used += ENTRY_BYTES + bytes;
        self.ranges.push((at, bytes));
        Ok(())
    }

    fn grow(&mut self, needed: u64) -> Result<(), Error> {
        if self.used + needed <= self.room {
            return Ok(());
        }
        let heap = self.heap;
        let size = (self.used + needed).next_power_of_two().max(FIRST_BYTES);
        let header = heap.places.lane_header(self.lane);
        let slot = Slot(header + LANE_UNDO);
        let reserved = heap.reserve(size)?;
        let at = reserved.at().0;
        heap.copy(self.buffer, at, self.used);
        if self.used == 0 {
            // Old contents may look like an entry of this number.
            heap.medium.store(at, 0);
        }
        heap.flush_range(at, self.used.max(8));
        heap.medium.fence();
        heap.relink(slot, reserved, (Slot(header + LANE_UNDO_CHECK), check_word(heap.seed, slot.0, at)))?;
        (self.buffer, self.room) = (at, size);
        Ok(())
    }

    /// The slot has the object after the commit.
    pub fn alloc(&mut self, slot: Slot, size: u64) -> Result<Offset, Error> {
        self.heap.check_slot(slot)?;
        let reserved = self.heap.reserve(size)?;
        let at = reserved.at();
        self.publish(slot, reserved);
        Ok(at)
    }

    /// At the commit, which makes the object durable.
    pub fn publish(&mut self, slot: Slot, reserved: Reserved) {
        self.ranges.push((reserved.at().0, reserved.size()));
        self.parts.push(Part::Alloc(slot, reserved));
    }

    /// At the commit.
    pub fn free(&mut self, slot: Slot) {
        self.parts.push(Part::Free(slot, 0));
    }

    /// At the commit.
    pub fn free_and_set(&mut self, slot: Slot, value: u64) {
        self.parts.push(Part::Free(slot, value));
    }

    pub fn set(&mut self, slot: Slot, value: u64) {
        self.parts.push(Part::Set(slot, value));
    }

    /// An error undoes the transaction.
    pub fn commit(mut self) -> Result<(), Error> {
        let heap = self.heap;
        for (at, bytes) in &self.ranges {
            heap.flush_range(*at, *bytes);
        }
        heap.medium.fence();
        let mut parts = std::mem::take(&mut self.parts);
        if self.open {
            parts.push(Part::Set(Slot(heap.places.lane_header(self.lane) + LANE_TX), 0));
        }
        match heap.try_parts(&parts) {
            Ok(()) => {
                self.open = false;
                Ok(())
            }
            Err(error) => {
                self.parts = parts;
                Err(error)
            }
        }
    }
}

impl<M: Medium + Space> Drop for Tx<'_, M> {
    fn drop(&mut self) {
        let heap = self.heap;
        if self.open {
            undo_one(&heap.medium, heap.places.lane_header(self.lane), self.number, self.buffer);
        }
        heap.cancel_parts(std::mem::take(&mut self.parts).into_iter());
        heap.free_tx().0.push(self.lane);
    }
}

/// The last snapshot first.
fn undo_one<M: Medium>(medium: &M, header: u64, number: u64, buffer: u64) {
    let load = |at: u64| medium.word(at).load(Ordering::Relaxed);
    let mut entries = Vec::new();
    let mut entry = buffer;
    while entry + ENTRY_BYTES <= medium.len() && load(entry) == number {
        let (at, bytes, data) = (load(entry + 8), load(entry + 16), entry + ENTRY_BYTES);
        let fits = |from: u64| from.checked_add(bytes).is_some_and(|end| end <= medium.len());
        let whole = at.is_multiple_of(8) && bytes.is_multiple_of(8) && fits(at) && fits(data);
        if !whole || load(entry + 24) != entry_check(medium, number, at, bytes, data) {
            break;
        }
        entries.push((at, bytes, data));
        entry = data + bytes;
    }
    for (at, bytes, data) in entries.into_iter().rev() {
        for i in (0..bytes).step_by(8) {
            medium.store(at + i, load(data + i));
        }
        (at & !(LINE_BYTES - 1)..at + bytes).step_by(LINE_BYTES as usize).for_each(|line| medium.flush(line));
    }
    medium.fence();
    medium.store(header + LANE_TX, 0);
    medium.flush(header + LANE_TX);
    medium.fence();
}

/// After a crash; returns their number.
pub fn undo<M: Medium>(medium: &M, sup: &Super) -> Result<u64, Error> {
    let mut undone = 0;
    for lane in 0..sup.lanes {
        let header = sup.places().lane_header(lane);
        let words = Header { medium, seed: sup.seed(), at: header };
        let (number, buffer) = (words.transaction()?, words.undo()?);
        if number == 0 {
            continue;
        }
        if !buffer.is_multiple_of(8) || buffer < sup.places().data() || buffer >= medium.len() {
            return Err(Error::Damaged { what: "undo buffer of a lane", at: header + LANE_UNDO });
        }
        undo_one(medium, header, number, buffer);
        undone += 1;
    }
    Ok(undone)
}
