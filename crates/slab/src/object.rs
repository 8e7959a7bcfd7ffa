//! Caches of equal objects that programs describe.
//!
//! An [`ObjectSlabs`] cuts a [`PageSupplier`]'s pages into an [`ObjectLayout`]'s objects, which
//! stay constructed while free. A [`Depot`] of magazines lies between it and the CPUs.
//! **From.** Bonwick94; Bonwick & Adams, "Magazines and Vmem", USENIX ATC 2001. We validate each
//! free (§6.2: only large objects, or when debugging), construct objects on first use, and free
//! complete slabs by an interval's least number, not after 15 s each (§3.4).
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
//!     let Some(Taken::Raw(object)) = slabs.alloc(&mut pages) else { panic!("nothing was constructed yet") };
//!     object.write(42);
//!     assert_eq!(slabs.free(object.add(8), true), Err(BadObject::Inside { start: object, offset: 8 }));
//!     assert_eq!(slabs.free(object, true), Ok(()));
//!     assert_eq!(slabs.free(object, true), Err(BadObject::Free));
//!     assert_eq!(slabs.alloc(&mut pages), Some(Taken::Constructed(object)));
//!     assert_eq!(object.read(), 42);
//!     slabs.free(object, true)?;
//!     slabs.destroy(&mut pages, |object| object.write(0)).expect("nothing is out");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! ```text
//! slab:   | colour | object | object | … | tail, with the record and its bits if they fit |
//! table:  address → record       records apart: on pages of such
//! depot:  full magazines → … → · empty magazines → … →
//! ```
//! **Invariants** (besides S2 to S4):
//! - *O1* a slab's count in use equals its bits "out"; bits past its last object are set; no free
//!   object's bit precedes the word `hint`;
//! - *O2* the table finds each slab by its first and its last byte, and nothing else;
//! - *O3* objects begin at a colour, are aligned, and end before the record and the slab's end;
//! - *O4* each slab with its record apart has one;
//! - *O5* full magazines in the depot have rounds, empty ones none; its counts are their sums.
//!

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
