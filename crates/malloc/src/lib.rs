//! malloc: size classes and per-thread caches over slabs over the page heap.
//!
//! **What.** The straight line of a request: size → class → this thread's list of free objects → a batch from the class's
//! slabs → a span of the page heap → hugepage-aligned address space of Linux.
//!
//! **From.** TEMERAIRE §3 (TCMalloc's structure), with Bonwick's slabs as the middle (a size class is an object cache
//! without a constructor).
//!
//! **State.** One [`heap::Heap`] in static memory; its metadata, the page map and the caches lie in mappings of their own:
//! nothing here ever calls malloc.
//!
//! **Invariants.** M1 a page's mark is a class exactly while that class's slabs hold it and
//! no other class's objects lie on it; M2 a pointer's memory is touched only
//! after the page map said that it is ours; M3 no lock is held while the C library is called in a way that may allocate; M4 a batch between
//! threads is in one place; M5 an object goes back to the shard that its slab's record names.
//!
//! **Threads.** Caches are their threads' own; the classes of each shard, the page heap and the huge objects have a lock each (order: heap of its own → object cache → class → pages). Any
//! thread may free any object: it goes into that thread's cache.
//!
//! **Failure.** Null and `errno`; after it everything is as before. A bad pointer from the program is reported with its
//! address before anything has been changed.
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
pub mod sizes;
mod start;
mod statics;
mod thread;

pub use craton_heap::{Misuse, size_class};
pub use observe::{inspect, json, report, segment, stats, text};
pub use statics::SEGMENT;

#[cfg(any(test, loom))]
extern crate std;
#[cfg(test)]
mod tests;
