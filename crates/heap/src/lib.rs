//! malloc's core without a process: size classes, caches and large objects over slabs over a page heap.
//!
//! **What.** The straight line of a request: size → class → a cache's free objects → a batch from the class's slabs → a span of
//! the page heap → the floor. Everything around it (threads, options, limits' sources, statistics, reports) is the process's,
//! which looks in through [`hooks::Hooks`].
//!
//! **From.** TEMERAIRE §3 (TCMalloc's structure), with Bonwick's slabs in the middle and NVAlloc's slab morphing (§5.2).
//!
//! **State.** [`heap::Heap`] over a [`Platform`](craton_base::Platform), a clock and hooks. No statics, no thread-local state, no
//! environment: everything runs over `craton-sim`, under virtual time.
//!
//! **Layers**, each of which knows only those before it:
//! ```text
//! size_class misuse hooks mark record page_map page_heap gate     names, numbers, seams
//! shard huge morph(search) thread_cache                    state of the parts
//! heap                                                     the parts together, and their locks
//! spans limits                                             span sources as decorators
//! morph central                                            size classes
//! large huge(route) owned                                  spans and mappings as objects
//! find refill beyond cpu_cache maintain                    what the process calls
//! ```
//!
//! **Invariants.** M1 a page's mark is a class exactly while that class's slabs hold it and no other class's objects lie on it;
//! M2 a pointer's memory is touched only after the page map has named it ours; M4 a batch between threads is in one place;
//! M5 an object goes back to the shard that its slab's record names.
//!
//! **Threads.** Any thread may free any object. Lock order: class → morphs → pages; `huge` is a leaf.
//!
//! **Failure.** Null; after it everything is as before. A bad pointer is reported before anything has changed.
#![no_std]

pub mod beyond;
pub mod central;
pub mod cpu_cache;
pub mod find;
pub mod gate;
pub mod heap;
pub mod hooks;
pub mod huge;
pub mod huge_object;
pub mod large;
pub mod limits;
pub mod maintain;
pub mod mark;
pub mod misuse;
#[cfg(loom)]
pub mod model;
pub mod morph;
pub mod owned;
pub mod page_heap;
pub mod page_map;
pub mod record;
pub mod refill;
mod search;
pub mod shape;
pub mod shard;
pub mod spans;
pub mod thread_cache;

pub use craton_slab::size_class;
pub use find::Found;
pub use heap::{Heap, Parts};
pub use misuse::Misuse;

#[cfg(any(test, loom))]
extern crate std;
// A file that tests of the crates above take in names this crate by its name.
#[cfg(test)]
extern crate self as craton_heap;
#[cfg(test)]
pub(crate) mod tests;
