//! Memory for the log's chunks: units of 64 KiB of the data area. A chunk that left the list is
//! used again only once its epoch is settled: a crash may redo lines of unsettled epochs into it.

use super::chunk::CHUNK_BYTES;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) const UNIT_BYTES: u64 = 65_536;
const CHUNKS: u8 = (UNIT_BYTES / CHUNK_BYTES) as u8;

#[derive(Default)]
pub(super) struct Room {
    free: BTreeSet<u64>,
    units: BTreeMap<u64, u8>,
    retired: VecDeque<(u64, u64)>,
}

impl Room {
    pub(super) fn add_unit(&mut self, unit: u64) {
        self.units.insert(unit, CHUNKS);
        self.free.extend((0..u64::from(CHUNKS)).map(|chunk| unit + chunk * CHUNK_BYTES));
    }

    pub(super) fn add_used(&mut self, at: u64) {
        let unit = at / UNIT_BYTES * UNIT_BYTES;
        if !self.units.contains_key(&unit) {
            self.add_unit(unit);
        }
        if self.free.remove(&at) {
            self.count(at, false);
        }
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn retired(&self) -> usize {
        self.retired.len()
    }

    pub(super) fn units(&self) -> impl Iterator<Item = u64> + '_ {
        self.units.keys().copied()
    }

    /// The lowest free chunk, so that higher units empty.
    pub(super) fn take(&mut self) -> Option<u64> {
        let at = self.free.pop_first()?;
        self.count(at, false);
        Some(at)
    }

    pub(super) fn retire(&mut self, at: u64, epoch: u64) {
        self.retired.push_back((epoch, at));
    }

    pub(super) fn settle(&mut self, settled: u64) {
        for _ in 0..self.retired.len() {
            let Some((epoch, at)) = self.retired.pop_front() else { break };
            if epoch > settled {
                self.retired.push_back((epoch, at));
            } else {
                self.free.insert(at);
                self.count(at, true);
            }
        }
    }

    /// The highest free unit, if `keep` free chunks stay.
    pub(super) fn take_unit(&mut self, keep: usize) -> Option<u64> {
        if self.free.len() < keep + usize::from(CHUNKS) {
            return None;
        }
        let unit = self.units.iter().rev().find(|(_, free)| **free == CHUNKS).map(|(unit, _)| *unit)?;
        self.units.remove(&unit);
        for chunk in 0..u64::from(CHUNKS) {
            self.free.remove(&(unit + chunk * CHUNK_BYTES));
        }
        Some(unit)
    }

    fn count(&mut self, at: u64, is_more: bool) {
        if let Some(free) = self.units.get_mut(&(at / UNIT_BYTES * UNIT_BYTES)) {
            *free = if is_more { *free + 1 } else { *free - 1 };
        }
    }
}
