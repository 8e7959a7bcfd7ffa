//! The lab: the same command on several allocators, side by side.
//!
//! **What.** [`measure`] runs a command in turn (A B A B …) on several allocators. [`micro`] times
//! single calls. [`replay`] repeats a page-heap trace on other policies. The rest evaluates and
//! shows.
//!
//! **Units.** Names end in `_s` (seconds), `_bytes`.
//!
//! **Failure.** A failed run has a [`measure::Status`], and is in no median.

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
