//! The lab: the same command on several allocators, side by side.
//!
//! **What.** [`measure`] runs a command interleaved (A B A B …) under several allocators and reports what each run cost;
//! [`peers`] knows the allocators; [`summary`] and [`ratios`] make medians, ratios and intervals of the runs;
//! [`document`] is what `--json` writes, with [`machine`] in it. [`micro`] times single calls; [`replay`] plays what a program
//! asked of its page heap on other policies. [`picture`] draws; [`page`] is the HTML page of a comparison.
//!
//! **Units.** Times in seconds as `f64`, named `_s`; memory in bytes, named `_bytes`; faults are counts.
//!
//! **Failure.** A run that failed is a run with its [`measure::Status`]: it is shown, and no median contains it.
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
