//! The papers' [`experiment`]s (`craton lab`), what they compare, and the programs that they run.
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
