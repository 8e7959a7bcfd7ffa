//! Craton's heap in another process, or in a core file.
//!
//! **What.** [`Live`] stops a process and reads it; [`CoreFile`] is what is left of one. In the memory of either, [`Heap::find`] finds the
//! library's table of names and numbers, by which it walks the heap: which object is out, which is free and why, what is broken.
//! On that stand [`stats`], [`leaks`], [`whatis`] and [`verify`]. [`set`] asks a running process for another setting.
//!
//! **From.** Bonwick94 §6: a heap that can be asked, after a crash and on a running system, whose a buffer is. Leaks are found by
//! a conservative mark, as collectors for C do it (Boehm and Weiser 1988).
//!
//! **State.** Nothing here knows a layout of the library's. The table (`craton_malloc::inspect`) names the offsets; what a walk needs and does
//! not find by name is an error that says so.
//! ```text
//! memory (live | core) → table → heap: marks of pages, records, lists of free objects → spans → objects
//!                                                                                     ↘ what does not fit: Broken
//! ```
//!
//! **Units.** Addresses and sizes in bytes, of the process that is read.
//!
//! **Failure.** What can be said to the user: a text with the value that was wrong and what to do. A heap that is broken is no
//! failure: the walk notes where, and goes on.
//!
//! **Not here.** Changing anything in the process that is read, but for the request that [`set`] leaves, and what has threads come by for it.
//!
//! **Unsafe.** None but in `live.rs` and `set.rs`, which make system calls.

mod caches;
mod core_file;
mod heap;
mod kit;
mod leaks;
mod live;
mod log;
mod memory;
mod morph;
mod names;
mod reader;
mod save;
mod set;
mod stats;
mod table;
mod verify;
mod whatis;

pub use caches::{Cache, CacheSlab, Caches, Place};
pub use core_file::CoreFile;
pub use heap::{Broken, Heap, Kind, Object, Span};
pub use kit::{Beside, Buffer, Event, Kit, Log, Transaction, Who};
pub use leaks::{Group, Leaks, Site, leaks};
pub use live::Live;
pub use log::log;
pub use memory::{Map, Memory, Thread};
pub use names::Names;
pub use save::save;
pub use set::{Answer, Refused, set};
pub use stats::{CacheLine, ClassLine, HeapLine, Stats, stats};
pub use verify::{Verdict, verify};
pub use whatis::{What, whatis};

#[cfg(test)]
mod tests;
