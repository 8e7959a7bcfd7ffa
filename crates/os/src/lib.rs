//! The Linux floor: what Craton asks of the system.
//!
//! **Units.** Bytes, or as named; heap ranges in pages of 8 KiB. The machine's page size is found
//! at run time.
//! **Threads.** The caller's lock, or a pure system call. **Failure.** [`craton_base::NoMemory`] or
//! `None`; the caller keeps `errno`.
#![no_std]
// Models leave out the modules of files.
#![cfg_attr(loom, allow(dead_code))]

mod bell;
mod call;
pub mod cgroup;
mod clock;
pub mod copy;
pub mod cpus;
mod decimal;
#[cfg(not(loom))]
pub mod disk_file;
mod event;
pub mod fault;
pub mod file_map;
#[cfg_attr(loom, path = "futex/tests/model.rs")]
mod futex;
pub mod guarded;
pub mod label;
mod line;
mod listener;
pub mod loaded;
pub mod mapping;
pub mod maps;
mod mutex;
pub mod names;
mod out_file;
mod pagemap;
mod persist;
#[cfg(not(loom))]
pub mod persistent_file;
mod platform;
pub mod probe;
pub mod process;
mod region;
mod replacement;
pub mod restrict;
pub mod rseq;
pub mod shared_page;
mod small_file;
mod stamps;
pub mod symbol;
pub mod task;
pub mod thp;
pub mod thread;
pub mod touched;
pub mod unwind;
pub mod watch;

pub use bell::Bell;
pub use clock::{CoarseClock, precise_ns, process_cpu_ns, processor_ns};
pub use decimal::Decimal;
#[cfg(not(loom))]
pub use disk_file::DiskFile;
pub use event::Event;
pub use file_map::FileMap;
pub use line::{Line, write_to_stream};
pub use mutex::rank::trust as trust_lock_order;
pub use mutex::{Guard, Mutex, Rank};
pub use out_file::OutFile;
pub use persist::WriteBack;
#[cfg(not(loom))]
pub use persistent_file::PersistentFile;
pub use platform::Linux;
pub use region::{PartSpec, Region};
pub use replacement::Replacement;
pub use stamps::stamp_clock;

#[cfg(test)]
mod tests;
