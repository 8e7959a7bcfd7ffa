//! Caches of equal objects on slabs.
//!
//! A [`SlabCache`] serves a size class of malloc, an [`object::ObjectSlabs`] objects that programs
//! describe and that stay constructed.
//! **From.** Bonwick94. Records lie apart, so that power-of-two objects waste no slab; a slab may
//! change its class while objects live on it (`morph`, NVAlloc §5.2).
//!
//! **Invariants** (walked by `check`; O1 to O5 of [`object`]):
//! - *S1* used + free-list length = carved ≤ capacity, for each slab of a class;
//! - *S2* a slab is on the list of its fullness's eighth iff its level is below the capacity;
//! - *S3* the complete slabs are those that the working set counts;
//! - *S4* the cache's counts are the sums over its slabs;
//! - *S5* the record knows the last object of its free list, whose link leads to [`end`];
//! - *S6* in a slab of two sizes, `carved` counts the places of the new size, which overlap neither
//!   each other nor a live old object; its free objects lie on them, and its pages' records name
//!   their entries. Without a live old object it has an object in use and a place off the grid.
//!
//! **Threads.** Under the cache's lock. Records are atomic because caches share a table.
//! **Unsafe.** Uses links inside free objects.
#![no_std]

mod cache;
mod chain;
mod check;
mod geometry;
mod lists;
mod morph;
pub mod object;
mod record;
pub mod size_class;
mod slab;
mod working_set;

pub use cache::{Freed, SlabCache};
pub use chain::{Chain, Marks, end};
pub use check::Broken;
pub use geometry::Geometry;
pub use morph::donate::{Donors, Left, Part, Wish, donate};
pub use morph::{Morph, Morphs, Place, Starts};
pub use record::{Records, SlabRecord};
pub use slab::SlabStats;

#[cfg(test)]
mod tests;
