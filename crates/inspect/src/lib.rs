//! Craton's heap in another process, or in a core file.
//!
//! **What.** [`Live`] reads a process that sleeps or is stopped; [`CoreFile`] is what is left of one. In either,
//! [`Heap::find`] finds the library's table of names and numbers and walks the heap by it: which
//! object is out, which is free and why, what is broken. [`stats`], [`leaks`], [`whatis`] and
//! [`verify`] build on that. [`set`] changes settings of a running process.
//!
//! **From.** Bonwick94 §6: a heap that names the owner of a buffer, after a crash and on a running
//! system. Leaks are found by a conservative mark, as collectors for C do it (Boehm and Weiser
//! 1988).
//!
//! **State.** Nothing here knows the library's layout. The table (`craton_malloc::inspect`) names
//! the offsets; a name that a walk needs and does not find is an error.
//! ```text
//! memory (live | core) → table → heap: marks of pages, records, lists of free objects → spans → objects
//!                                                                                     ↘ what does not fit: Broken
//! ```
//!
//! **Units.** Addresses and sizes in bytes, of the process that is read.
//!
//! **Failure.** A text with the wrong value and what to do. A walk records damage and goes on.
//!
//! **Not here.** Changes in the process that is read, except [`set`]'s request and what makes threads read it.
//!
//! **Unsafe.** System calls in `live.rs` and below it alone.

mod caches;
mod core_file;
mod heap;
mod kit;
mod leaks;
mod live;
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

pub use core_file::CoreFile;
pub use heap::Heap;
pub use kit::{Log, log};
pub use leaks::{Group, Leaks, leaks};
pub use live::Live;
pub use memory::Memory;
pub use save::save;
pub use set::{Answer, Refused, set};
pub use stats::{Stats, stats};
pub use verify::{Verdict, verify};
pub use whatis::whatis;

#[cfg(test)]
mod tests;
