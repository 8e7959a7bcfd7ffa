//! Caches of equal objects on slabs.
//!
//! **What.** A [`SlabCache`] cuts spans of pages into equal objects and hands them out and takes them back in chains. A
//! size class of malloc is such a cache without a constructor; which classes there are is [`size_class`].
//!
//! [`object`] is the object-caching allocator of the paper as a whole, for objects that programs describe; the rest of this page is about
//! size classes.
//!
//! **From.** Bonwick94 §3.2: a slab is one or more pages cut into equal objects with a count of those in use; partial
//! slabs are used first; a slab whose last object comes back is given up whole. The fullest of the partial slabs come
//! first, as in TCMalloc (TEMERAIRE §3). Where we differ from Bonwick: complete slabs are kept only as far as the cache
//! has missed what it gave back, since one kept slab can keep a hugepage from coming free; the slab's
//! record lies apart, in a table indexed by page, so that objects of powers of two do not waste a slab's worth for it,
//! and so that a stray write of the program cannot reach it; a fresh slab's objects are cut one by one as they are
//! first asked for, so that memory is not touched before it is used.
//!
//! **Units.** Objects; pages of 8 KiB; a slab is named by its first page.
//!
//! **State.**
//! ```text
//! record (32 bytes, in a table by first page): free list, first and last · carved · used · links of the partial list
//! free object: | link to the next free object | … the rest is the front end's … |
//! ```
//!
//! **Invariants** (walked by [`SlabCache::check`]):
//! - S1 used + free-list length = carved ≤ capacity, for each slab;
//! - S2 a slab is on a partial list exactly when used < capacity, and on that of its eighth of fullness;
//! - S3 slabs without an object in use are those that the cache has counted as kept, and no more than it may keep;
//! - S4 the cache's counts are the sums over its slabs;
//! - S5 the record knows the last object of its free list, whose link is null;
//! - S6 of a slab of two sizes, `carved` counts the places of the new size, which overlap neither each other nor a live
//!   object of an old size, its free objects lie on such places, and the records of its parts name its entry; as long as
//!   some old object lives it may have no object in use, and otherwise it has one, and a place off the grid. S1 to S5 hold
//!   for it with `carved` in the place of the capacity.
//!
//! **Threads.** A cache and the records of its slabs are used under the cache's lock. Records are made of relaxed
//! atomics only because records of different caches share a table.
//!
//! **Failure.** When the span source refuses, a shorter chain, down to an empty one, is the answer.
//!
//! **Not here.** Whether a pointer is valid: the front end checks that before an object comes back.
//!
//! **Unsafe.** Uses links inside free objects, whose memory belongs to the cache.
#![no_std]

mod cache;
mod chain;
mod check;
pub mod debug;
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
pub use record::SlabRecord;
pub use slab::SlabStats;

#[cfg(test)]
mod tests;
