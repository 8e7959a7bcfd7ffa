//! The lab: the same command on several allocators ([`measure`]), single calls ([`micro`]),
//! page-heap traces on other policies ([`replay`]). Names end in `_s` (seconds), `_bytes`.
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
