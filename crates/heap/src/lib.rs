//! malloc's core without a process: size classes, caches and large objects, slabs, page heap.
//!
//! **What.** A request goes from its size to a class, to a cache's free list, to a batch of the
//! class's slabs, to a span of the page heap, to the floor. Threads, options, statistics and
//! reports belong to the process, which listens through [`hooks::Hooks`].
//!
//! **From.** TEMERAIRE §3 (TCMalloc's structure), Bonwick's slabs, NVAlloc's slab morphing (§5.2).
//!
//! **State.** [`heap::Heap`] over a [`Platform`](craton_base::Platform), a clock and hooks. No
//! statics, thread-local state or environment: it also runs over `craton-sim` in virtual time.
//!
//! **Layers**, each of which uses only those above it:
//! ```text
//! size_class misuse hooks page_map mark shuffle record page_heap gate lent names, numbers, seams
//! shard huge morph(search) thread_cache                    state of the parts
//! heap                                                     the parts together, and their locks
//! spans limits                                             span sources as decorators
//! gather morph central                                     size classes
//! large huge(route) owned                                  spans and mappings as objects
//! sampled find refill beyond cpu_cache maintain census     what the process calls
//! ```
//!
//! **Invariants.** *M1* a page's mark is a class exactly while that class's slabs hold it and no
//! other class's objects lie on it. *M2* a pointer's memory is touched only after the page map has
//! named it ours. *M4* a batch between threads is in one place. *M5* an object returns to the shard
//! that its slab's record names.
//!
//! **Threads.** Any thread may free any object. Lock order: class → morphs → pages; `huge` last.
//!
//! **Failure.** Null, with the state unchanged. A misuse is reported before any change.
#![no_std]

pub mod beyond;
pub mod census;
pub mod central;
pub mod cpu_cache;
pub mod find;
pub mod gate;
mod gather;
pub mod heap;
pub mod hooks;
pub mod huge;
pub mod huge_object;
mod kept;
pub mod large;
pub mod length;
pub mod lent;
mod limits;
pub mod maintain;
pub mod mark;
pub mod misuse;
#[cfg(loom)]
#[path = "tests/model.rs"]
pub mod model;
pub mod morph;
pub mod owned;
pub mod page_heap;
pub mod page_map;
pub mod record;
pub mod refill;
pub mod sampled;
mod search;
pub mod shape;
pub mod shard;
pub mod shuffle;
mod spans;
pub mod sparse_object;
pub mod thread_cache;

pub use craton_slab::size_class;
pub use find::Found;
pub use heap::{Heap, Parts};
pub use misuse::Misuse;

#[cfg(any(test, loom))]
extern crate std;
// The tests of upper crates include a file that names this crate.
#[cfg(test)]
extern crate self as craton_heap;
#[cfg(test)]
pub(crate) mod tests;
