//! Fields of the kit, for `craton core`.

use crate::setting::{AUDIT, Setting};
use crate::stacks::Stacks;
use crate::table::{Buffer, Event, Kind, State};
use crate::{Kit, Process, guard, quarantine, stacks, table};
use core::mem::offset_of;

impl<P: Process> Kit<P> {
    /// By distance from the kit's address.
    pub const PARTS: [(&'static str, usize); 6] = [
        ("kit.table", offset_of!(Self, table) + table::PARTS_AT),
        ("kit.stacks", offset_of!(Self, stacks) + Stacks::AT),
        ("kit.quarantine", offset_of!(Self, quarantine) + quarantine::RING_AT),
        ("kit.guard", offset_of!(Self, guards)),
        ("kit.log", offset_of!(Self, setting) + Setting::LOG[0]),
        // A byte: there is a log.
        ("kit.log.made", offset_of!(Self, setting) + Setting::LOG[1]),
    ];
}

pub const SHAPE: [(&str, usize); 31] = [
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
    ("kit.check.audit", AUDIT as usize),
    ("kit.buffer.state", offset_of!(Buffer, state)),
    ("kit.buffer.kind", offset_of!(Buffer, kind)),
    // 0: malloc; else a cache's number plus 1.
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
