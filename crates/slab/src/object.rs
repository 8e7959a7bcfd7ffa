//! Caches of equal objects that programs describe.
//!
//! **What.** An [`ObjectSlabs`] is the back end of one cache: slabs of pages from a
//! [`PageSupplier`], cut into objects of an [`ObjectLayout`], which keep their constructed state
//! while they are free. Between it and the processors is a [`Depot`] of magazines. The front end
//! constructs and destroys objects, takes locks, and keeps names and limits.
//!
//! **From.** Bonwick94 (§ numbers are its); magazines are from Bonwick & Adams, "Magazines and
//! Vmem", USENIX ATC 2001. Where we differ: an object that comes back is looked at always (§6.2
//! finds wrong ones of large objects, or of all when debugging); each is constructed when it is
//! first taken rather than all with their slab; complete slabs go back by the least number of them
//! in an interval, as magazines do, instead of after 15 s each (§3.4).
//!
//! ```
//! use craton_slab::object::{BadObject, BufferPages, ObjectLayout, ObjectSlabs, Taken};
//!
//! let mut memory = vec![0u8; 100 << 10];
//! let mut map = [0; 1];
//! // SAFETY: the memory is the supplier's as long as its pages are used.
//! let mut pages = unsafe { BufferPages::new(memory.as_mut_ptr(), memory.len(), &mut map) };
//! let mut slabs = ObjectSlabs::new(ObjectLayout::of(200, 8, true)?);
//! // SAFETY: the supplier is always the same.
//! unsafe {
//!     let Some(Taken::Raw(object)) = slabs.take(&mut pages) else { panic!("nothing was constructed yet") };
//!     object.write(42);
//!     assert_eq!(slabs.give(object.add(8), true), Err(BadObject::Inside { start: object, offset: 8 }));
//!     assert_eq!(slabs.give(object, true), Ok(()));
//!     assert_eq!(slabs.give(object, true), Err(BadObject::Free));
//!     assert_eq!(slabs.take(&mut pages), Some(Taken::Constructed(object)));
//!     assert_eq!(object.read(), 42);
//!     slabs.give(object, true)?;
//!     slabs.destroy(&mut pages, |object| object.write(0)).expect("nothing is out");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **State.**
//! ```text
//! slab:   | colour | object | object | … | tail, with the record and its bits if they fit |   records apart: on pages of such
//! table:  address → record
//! depot:  full magazines → … → · empty magazines → … →
//! ```
//!
//! **Invariants** (walked by [`ObjectSlabs::check`] and [`Depot::check`], besides S2 to S4):
//! - O1 a slab's count in use is the number of its objects whose bit says out, bits behind its last
//!   object are set, and no free object's bit comes before the word that its record names;
//! - O2 the table finds each slab by its first and its last byte, and nothing else;
//! - O3 a slab's objects begin at a colour, are aligned, and end before its record and its end;
//! - O4 each slab with its record apart has one;
//! - D1 a full magazine in the depot has rounds, an empty one none, and the depot's counts are the
//!   sums over them.
//!
//! **Threads.** None of its own: all is under a lock of the caller's.
//!
//! **Failure.** When the supplier refuses, `take` is `None`, and nothing has changed. An object
//! that cannot come back is an error ([`BadObject`]), and nothing has changed.
//!
//! **Not here.** Constructors, names, limits, waiting; what processors have in their magazines,
//! which counts as out here.

mod cache;
mod check;
mod colour;
mod depot;
mod layout;
mod magazine;
mod reap;
mod record;
mod shape;
mod supply;
mod table;
mod trusted;

pub use cache::{BadObject, ObjectPlace, ObjectSlabs, Taken};
pub use depot::{Depot, DepotStats};
pub use layout::{BadLayout, ObjectLayout};
pub use magazine::Magazine;
pub use reap::{Detached, StillOut};
pub use supply::{BufferPages, FramePages, PageSupplier, SpanPages};

#[cfg(test)]
mod tests;
