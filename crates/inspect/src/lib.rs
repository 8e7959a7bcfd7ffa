//! Craton's heap in another process, or in a core file.
//!
//! **What.** [`Live`] reads a sleeping or stopped process, [`CoreFile`] a core file. [`Heap::find`]
//! finds the library's table and walks the heap by it. [`set`] changes options of a running
//! process.
//!
//! **From.** Bonwick94 §6; Boehm and Weiser 1988 ([`leaks`]).
//!
//! **State.** Nothing here knows the library's layout. The table (`craton_malloc::inspect`) names
//! the offsets; a missing name that a walk needs is an error.
//! ```text
//! memory (live | core) → table → heap: marks of pages, records, lists of free objects → spans → objects
//!                                                                                     ↘ what does not fit: Broken
//! ```
//!
//! **Units.** Addresses and sizes in bytes, of the other process.
//!
//! **Failure.** A text with the wrong value and a remedy. A walk records damage and goes on.
//!
//! **Unsafe.** System calls, in `live.rs` and below.

mod caches;
mod call;
mod captive;
mod core_file;
mod demangle;
mod dump;
mod exact;
mod exhaust;
mod file_bytes;
mod heap;
mod hugepages;
mod kit;
mod leaks;
mod ledger;
mod lines;
mod live;
mod locks;
mod mapped;
mod memory;
mod morph;
mod names;
mod objects;
mod perf_map;
mod profile;
mod published;
mod reader;
mod refs;
mod resident;
mod save;
mod set;
mod snapshot;
mod spare;
mod stacks;
mod stats;
mod table;
mod users;
mod verify;
mod watch;
mod whatis;

pub use call::Call;
pub use captive::add_captive;
pub use core_file::CoreFile;
pub use demangle::demangled;
pub use dump::{Dump, Word, dump};
pub use heap::Heap;
pub use hugepages::{Hugepage, Hugepages, Place, SpanRow};
pub use kit::{Log, log};
pub use leaks::{Group, Leaks, Sampled, Site as LeakSite, leaks};
pub use ledger::{ClassRow, Ledger, Row, ledger};
pub use lines::{Frame, Lines};
pub use live::{Live, has_own_numbers, is_running};
pub use locks::locks;
pub use mapped::root_of;
pub use memory::{Map, Memory};
pub use perf_map::PerfMap;
pub use profile::{Count, MAGIC as PROFILE_MAGIC, Profile, Site};
pub use published::{ClassShare, Published};
pub use refs::{ENDS, Holder, Refs, refs};
pub use save::save;
pub use set::{Answer, Refused, set};
pub use snapshot::{Room, Snapshot};
pub use stacks::{Measure, Stack, Stacks, Sum, Sums, calls};
pub use stats::{Stats, stats};
pub use table::Table;
pub use users::{Histogram, HistogramRow, User, Users, histogram, users};
pub use verify::{Verdict, verify};
pub use watch::{Watch, on_craton};
pub use whatis::whatis;

#[cfg(test)]
mod tests;
