//! The papers' experiments, what they compare, and programs worth measuring.
//!
//! **What.** `craton lab` runs the [`experiment`]s through `craton-papers`. They measure:
//!
//! | module | holds | run by |
//! |---|---|---|
//! | [`work`] | workloads that any allocator can be preloaded into | `craton-work` |
//! | [`real`] | other people's programs under a load, and the load generator | `craton-real`, `craton-drive` |
//! | [`empirical`] | a load that follows a distribution of sizes, on real and in simulated memory | `craton-work empirical` |
//! | [`caching`] | one object from malloc, from a cache, and from older allocators | `craton-objects` |
//! | [`wild`] | programs as other people write them, which measure themselves | `craton-wild` |
//! | [`frames`] | allocators of page frames, and processes killed on a zone in a file | `craton-crash` |
//! | [`heaps`] | persistent heaps under the loads of NVAlloc §6 | `craton-heaps` |
//! | [`durable`] | stores of pages on a disk that change all at once | `pheap-sync` |
//! | [`trust`] | a client that checks its objects, and programs whose system calls fail | `craton-client` |
//! | [`kernel`], [`objects`] | the load of a kernel's objects, and the allocators of 1994 for it | the experiments |
//!
//! **Not here.** This crate does not link `craton-malloc`, whose hooks would run in the measured
//! programs.

mod backed;
pub mod caching;
mod durable;
pub mod empirical;
pub mod experiment;
mod frames;
mod heaps;
mod kernel;
mod objects;
pub mod real;
pub mod trust;
pub mod wild;
pub mod work;

pub use frames::crash;
pub use heaps::{Task as HeapTask, measure as measure_heap};
