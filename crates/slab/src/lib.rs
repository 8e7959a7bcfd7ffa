//! Caches of equal objects on slabs.
//!
//! **What.** A cache cuts spans of pages into equal objects. A [`SlabCache`] is a size class of
//! malloc: its objects come and go in chains. An [`object::ObjectSlabs`] has objects that programs
//! describe and that keep their constructed state; its magazines are in [`object`]. Which classes
//! there are is [`size_class`].
//!
//! **From.** Bonwick94. Every cache's slabs live one life (`slab`): by fullness on lists (`lists`),
//! complete ones as the working set wants (`working_set`), walked by one walker (`check`). A
//! class's slab has a record by page (`record`) and links through its free objects (`chain`); a
//! constructed one has bits beside them. Where we differ: the fullest partial slabs serve first, as
//! in TCMalloc (TEMERAIRE §3); records lie apart, so that objects of powers of two waste no slab
//! for them and a stray write cannot reach them; objects are cut one by one as they are first asked
//! for, so that memory is not touched before it is used. A slab of a class may become one of
//! another while objects live on it (`morph`, NVAlloc §5.2).
//!
//! **Units.** Objects; pages of 8 KiB; a class's slab is named by its first page.
//!
//! **Invariants** (walked by `check`; O1 to D1 of [`object`]):
//! - S1 used + free-list length = carved ≤ capacity, for each slab of a class;
//! - S2 a slab is on a list exactly when its level is below the capacity, and on that of its eighth
//!   of fullness;
//! - S3 the complete slabs are those that the working set counts;
//! - S4 the cache's counts are the sums over its slabs;
//! - S5 the record knows the last object of its free list, whose link is null;
//! - S6 of a slab of two sizes, `carved` counts the places of the new size, which overlap neither
//!   each other nor a live object of an old size, its free objects lie on such places, and the
//!   records of its parts name its entry; as long as some old object lives it may have no object in
//!   use, and otherwise it has one, and a place off the grid. S1 to S5 hold for it with `carved` in
//!   the place of the capacity.
//!
//! **Threads.** A cache and its slabs are used under the cache's lock. Records of classes are
//! relaxed atomics only because records of different caches share a table.
//!
//! **Failure.** When the source refuses, a shorter or empty chain, or no object is the answer.
//!
//! **Not here.** Whether a pointer to an object of a class is valid: the front end checks that.
//!
//! **Unsafe.** Uses links inside free objects, whose memory belongs to the cache.
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
pub use chain::Chain;
pub use check::Broken;
pub use geometry::Geometry;
pub use morph::donate::{Left, NO_OFFER, Offer, Wish, donate};
pub use morph::{Morph, Morphs, Place};
pub use record::{Records, SlabRecord};
pub use slab::SlabStats;

#[cfg(test)]
mod tests;
