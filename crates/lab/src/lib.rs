//! The lab: the same command on several allocators, side by side.
//!
//! **What.** [`measure`] runs a command interleaved (A B A B …) on several allocators ([`peers`]).
//! [`summary`] and [`ratios`] compute medians, ratios and intervals; [`document`] is the JSON,
//! [`page`] the HTML, [`picture`] draws. [`micro`] times single calls. [`replay`] repeats a
//! page-heap trace on other policies.
//!
//! **Units.** Times in seconds as `f64`, named `_s`; memory in bytes, named `_bytes`; faults are
//! counts.
//!
//! **Failure.** A failed run has a [`measure::Status`]: it is shown, and no median contains it.
//!
//! **Not here.** Options, terminals and progress: `craton`. Experiments and workloads: `papers/`.

pub mod arrays;
pub mod document;
pub mod format;
pub mod machine;
pub mod measure;
pub mod micro;
pub mod page;
pub mod peers;
pub mod picture;
pub mod print;
pub mod ratios;
pub mod replay;
pub mod rng;
pub mod scratch;
pub mod shared_object;
pub mod summary;
pub mod symbols;
