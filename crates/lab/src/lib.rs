//! The lab: the same command on several allocators, side by side, and programs worth measuring.
//!
//! **What.** [`measure`] runs a command interleaved (A B A B …) under several allocators and says what each run cost;
//! [`summary`] makes medians and ratios of the runs; [`document`] is what `--json` writes, with [`machine`] in it;
//! [`work`] holds the workloads, which the program `craton-work` runs; [`empirical`] is the one that follows a given
//! distribution of sizes, on real memory and on the page heap in simulated memory.
//!
//! **Units.** Times in seconds as `f64`, named `_s`; memory in bytes, named `_bytes`; faults are counts.
//!
//! **Failure.** A run that failed is a run with its [`measure::Status`]: it is shown, and no median contains it.
//!
//! **Not here.** Finding the peers' libraries, tables and colours: the program `craton` does both.

pub mod document;
pub mod empirical;
pub mod machine;
pub mod measure;
pub mod summary;
pub mod work;
