//! The papers' experiments, what they compare, and programs worth measuring.
//!
//! | module | holds | run by |
//! |---|---|---|
//! | [`experiment`] | one for each figure | `craton lab` |
//! | [`work`] | workloads for any preloaded allocator | `craton-work` |
//! | [`real`] | other people's programs under a load | `craton-real`, `craton-drive` |
//! | [`empirical`] | a load by a distribution of sizes | `craton-work empirical` |
//! | [`caching`] | objects of malloc, of a cache, and of older allocators | `craton-objects` |
//! | [`wild`] | programs as other people write them | `craton-wild` |
//! | [`frames`] | allocators of page frames | `craton-crash` |
//! | [`heaps`] | persistent heaps | `craton-heaps` |
//! | [`durable`] | stores of pages on a disk | `pheap-sync` |
//! | [`trust`] | a client that checks its objects; system calls that fail | `craton-client` |
//! | [`kernel`], [`objects`] | a kernel's objects, and the allocators of 1994 | the experiments |
//!
//! This crate does not link `craton-malloc`, whose hooks would run in measured programs.

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
