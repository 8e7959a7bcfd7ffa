//! A slab's record in another process, by the library's table.

use crate::reader::{u16_in, u32_in, word_in};
use crate::table::Table;

/// Offsets in a slab's record.
#[derive(Debug)]
pub(crate) struct RecordShape {
    pub(super) bytes: usize,
    /// Of [`RecordShape::FIELDS`].
    at: [usize; 6],
    /// Of [`Record::last`].
    pub unit: u64,
    pub(super) entry_mask: u32,
    pub(super) owned: u32,
    pub(super) class_shift: u32,
    gone: u32,
    /// The last page is a guard page, no part of the object.
    guard: u32,
}

impl RecordShape {
    const FIELDS: [&str; 6] = ["free", "morph", "used", "carved", "last", "owner"];

    pub(super) fn of(table: &Table) -> Result<Self, String> {
        let get = |name: &str| table.get(&format!("record.{name}"));
        let mut at = [0; 6];
        for (at, name) in at.iter_mut().zip(Self::FIELDS) {
            *at = get(name)? as usize;
        }
        Ok(Self {
            bytes: get("bytes")? as usize,
            at,
            unit: get("unit")?,
            entry_mask: (1 << get("entry_bits")?) - 1,
            owned: get("owned_bit")? as u32,
            class_shift: get("owned_class_shift")? as u32,
            gone: table.get("length.gone_bit")? as u32,
            guard: table.get("length.guard_bit").unwrap_or(0) as u32,
        })
    }

    pub(super) fn record(&self, record: &[u8], pages: u32) -> Record {
        let [free, morph, used, carved, last, owner] = self.at;
        Record {
            free: word_in(record, free),
            pages: u64::from(pages & !(self.gone | self.guard)).saturating_sub((pages & self.guard != 0).into()),
            is_gone: pages & self.gone != 0,
            morph: u32_in(record, morph),
            used: u16_in(record, used).into(),
            carved: u16_in(record, carved).into(),
            last: u16_in(record, last).into(),
            owner: record.get(owner).copied().unwrap_or(0).into(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub free: u64,
    pub pages: u64,
    pub is_gone: bool,
    pub morph: u32,
    pub used: u64,
    pub carved: u64,
    pub last: u64,
    pub owner: u64,
}
