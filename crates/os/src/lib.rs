//! The Linux floor: what Craton asks of the system, and nothing else.
//!
//! **What.** Address space with the metadata of its pages ([`Region`]), mappings of their own for huge objects
//! ([`mapping`]), a lock that works before the C library is ready ([`Mutex`]), a sleep that can be ended
//! ([`Bell`]), the time ([`CoarseClock`]), facts of the
//! process ([`process`]), what it may use ([`cgroup`], [`cpus`]), its transparent hugepages ([`thp`]), a file that is written through memory ([`FileMap`]), cache lines written back
//! to memory that persists ([`WriteBack`]) and lines on
//! standard error that need no memory ([`Line`]), with the stacks that a thread came by ([`unwind`]) and the names of what is on them
//! ([`names`]).
//!
//! **Units.** Bytes, unless a name says otherwise; ranges of the heap in pages of 8 KiB. The machine's page size is
//! asked for at run time.
//!
//! **Threads.** Only [`Mutex`] synchronises; everything else is called under a lock of the layer above, or is a pure
//! system call.
//!
//! **Failure.** A refused system call is [`craton_base::NoMemory`] or `None`; `errno` is left to the caller.
//!
//! **Not here.** Any decision about how much, when, or which: those are policies of the layers above.
#![no_std]

mod bell;
pub mod cgroup;
mod clock;
pub mod copy;
pub mod cpus;
mod decimal;
mod event;
pub mod fault;
pub mod file_map;
#[cfg_attr(loom, path = "futex/model.rs")]
mod futex;
pub mod guarded;
mod line;
pub mod mapping;
pub mod maps;
mod mutex;
pub mod names;
mod persist;
mod platform;
pub mod process;
mod region;
pub mod restrict;
pub mod rseq;
mod small_file;
pub mod symbol;
pub mod task;
pub mod thp;
pub mod thread;
pub mod unwind;

pub use bell::Bell;
pub use clock::{CoarseClock, precise_ns};
pub use decimal::Decimal;
pub use event::Event;
pub use file_map::FileMap;
pub use line::{Line, write_to_stream};
pub use mutex::rank::trust as trust_lock_order;
pub use mutex::{Guard, Mutex, Rank};
pub use persist::WriteBack;
pub use platform::Linux;
pub use region::{PartSpec, Region};

#[cfg(test)]
mod tests;
