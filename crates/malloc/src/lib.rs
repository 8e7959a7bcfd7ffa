//! malloc for a process: the core of `craton-heap` with threads, options, limits, statistics, fork.
//!
//! **What.** A request: size → class → this thread's free list → a batch from the class's slabs → a
//! span of the page heap → hugepage-aligned address space of Linux.
//!
//! **From.** TEMERAIRE §3 (TCMalloc's structure), with Bonwick's slabs in the middle.
//!
//! **State.** One [`heap::Heap`] in static memory; metadata, page map and caches lie in mappings of
//! their own: nothing here calls malloc.
//!
//! **Invariants.** M1, M2, M4 and M5 of `craton_heap`. *M3* no lock is held across a call of the C
//! library that may allocate.
//!
//! **Threads.** A thread cache belongs to its thread. Each shard's classes, the page heap and the
//! huge objects have a lock each. Any thread may free any object, into its own cache.
//!
//! **Failure.** Null and `errno`, with the state unchanged. Misuse is reported before any change.
#![no_std]

pub mod batch;
pub mod caches;
pub mod debug;
mod errno;
mod fork;
pub mod front;
pub mod govern;
pub mod heaps;
mod here;
pub mod hints;
mod hooks;
pub mod observe;
pub mod options;
mod profile;
mod sampling;
pub mod sizes;
mod start;
mod statics;
mod thread;

pub use craton_heap::{Misuse, size_class};
pub use observe::{inspect, json, profile_file, report, segment, stats, text};
pub use statics::SEGMENT;

#[cfg(any(test, loom))]
extern crate std;
#[cfg(test)]
mod tests;
