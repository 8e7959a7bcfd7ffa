//! The lab: the same command on several allocators, side by side, and programs worth measuring.
//!
//! **What.** [`measure`] runs a command interleaved (A B A B …) under several allocators and says what each run cost;
//! [`peers`] knows the allocators; [`summary`] and [`ratios`] make medians, ratios and intervals of the runs;
//! [`document`] is what `--json` writes, with [`machine`] in it. [`work`] holds the workloads, which the program
//! `craton-work` runs, [`real`] those that are programs of other people, [`empirical`] follows
//! a given distribution of sizes, on real and in simulated memory, [`micro`] times single calls, and [`frames`] compares
//! allocators of page frames. [`kernel`] has the load of a kernel's objects and [`objects`] the allocators for it. [`experiment`] puts them together, and
//! [`picture`] draws what comes of it; [`page`] is the page of a comparison. [`replay`] plays what a program asked of its page heap
//! on other policies.
//!
//! **Units.** Times in seconds as `f64`, named `_s`; memory in bytes, named `_bytes`; faults are counts.
//!
//! **Failure.** A run that failed is a run with its [`measure::Status`]: it is shown, and no median contains it.
//!
//! **Not here.** Options, colours of a terminal and progress: the program `craton` has them.

pub mod caching;
pub mod document;
pub mod empirical;
pub mod experiment;
pub mod format;
pub mod frames;
pub mod kernel;
pub mod machine;
pub mod measure;
pub mod micro;
pub mod objects;
pub mod page;
pub mod peers;
pub mod picture;
pub mod print;
pub mod ratios;
pub mod real;
pub mod replay;
pub mod scratch;
pub mod shared_object;
pub mod summary;
pub mod symbols;
pub mod work;
