//! Where the kit's notes lie, for those who read the memory of another process.

use super::table::{Buffer, Event, Kind, State};
use super::{guard, quarantine, setting, stacks, table};
use core::mem::offset_of;

/// Addresses.
pub(crate) const ADDRESSES: [(&str, *const u8); 6] = [
    ("kit.table", table::WHERE),
    ("kit.stacks", stacks::WHERE),
    ("kit.quarantine", quarantine::WHERE),
    ("kit.guard", guard::WHERE),
    ("kit.log", setting::WHERE[0]),
    // A byte: whether there is a log.
    ("kit.log.made", setting::WHERE[1]),
];

/// Offsets and sizes in bytes, and what some bytes mean.
pub(crate) const SHAPE: [(&str, usize); 30] = [
    table::SHAPE[0],
    table::SHAPE[1],
    table::SHAPE[2],
    table::SHAPE[3],
    table::SHAPE[4],
    ("kit.buffer.bytes", size_of::<Buffer>()),
    ("kit.buffer.address", offset_of!(Buffer, address)),
    ("kit.buffer.size", offset_of!(Buffer, size)),
    ("kit.buffer.under", offset_of!(Buffer, under)),
    ("kit.buffer.checks", offset_of!(Buffer, checks)),
    ("kit.buffer.state", offset_of!(Buffer, state)),
    ("kit.buffer.kind", offset_of!(Buffer, kind)),
    // 0 for malloc, else a cache's number plus 1.
    ("kit.buffer.target", offset_of!(Buffer, target)),
    ("kit.buffer.taken", offset_of!(Buffer, taken)),
    ("kit.buffer.given", offset_of!(Buffer, given)),
    ("kit.event.time", offset_of!(Event, time_ns)),
    ("kit.event.stack", offset_of!(Event, stack)),
    ("kit.event.thread", offset_of!(Event, thread)),
    ("kit.state.live", State::Live as usize),
    ("kit.state.closed", State::Closed as usize),
    ("kit.kind.heap", Kind::Heap as usize),
    ("kit.kind.slot", Kind::Slot as usize),
    ("kit.stacks.bytes", stacks::BYTES),
    quarantine::SHAPE[0],
    quarantine::SHAPE[1],
    guard::SHAPE[0],
    guard::SHAPE[1],
    guard::SHAPE[2],
    guard::SHAPE[3],
    guard::SHAPE[4],
];
