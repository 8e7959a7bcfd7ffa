//! Caches of equal objects on slabs.
//!
//! **What.** A [`SlabCache`] is a size class of malloc, whose objects move in chains;
//! [`size_class`] lists the classes. An [`object::ObjectSlabs`] has objects that programs describe
//! and that stay constructed.
//! **From.** Bonwick94. Every cache's slabs live one life (`slab`): on lists by fullness (`lists`),
//! complete ones kept by the working set (`working_set`), checked by one walker (`check`). A
//! class's slab has a record by page (`record`) and links through its free objects (`chain`). Where
//! we differ: the fullest partial slabs serve first (TEMERAIRE §3); records lie apart, so that
//! power-of-two objects waste no slab for them and stray writes miss them; objects are cut on first
//! use, so that memory stays untouched. A slab may change its class while objects live on it
//! (`morph`, NVAlloc §5.2).
//! **Units.** Objects; pages of 8 KiB; a class's slab is named by its first page.
//!
//! **Invariants** (walked by `check`; O1 to O5 of [`object`]):
//! - *S1* used + free-list length = carved ≤ capacity, for each slab of a class;
//! - *S2* a slab is on a list iff its level is below the capacity: on that of its fullness's
//!   eighth;
//! - *S3* the complete slabs are those that the working set counts;
//! - *S4* the cache's counts are the sums over its slabs;
//! - *S5* the record knows the last object of its free list, whose link is null;
//! - *S6* in a slab of two sizes, `carved` counts the places of the new size, which overlap neither
//!   each other nor a live old object; its free objects lie on them, and the records of its pages
//!   name their entries. The bytes that an old object of the slab before covers are known. Without
//!   a live old object it has an object in use and a place off the grid. S1 to S5 hold with
//!   `carved` for the capacity.
//!
//! **Threads.** Under the cache's lock. Records are relaxed atomics because caches share a table.
//! **Failure.** When the source refuses: a shorter or empty chain, or no object. **Not here.**
//! Pointer validation for classes.
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
