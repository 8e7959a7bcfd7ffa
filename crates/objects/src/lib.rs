//! Homes for objects that a program chooses, over one heap ([`craton_heap`]) that knows none:
//! - [`caches`]: objects of one size, kept constructed while free (Bonwick94; Bonwick & Adams
//!   2001);
//! - [`heaps`]: objects of all sizes, destroyed together;
//! - [`hints`]: heaps of the library, one for each kind of use.
//!
//! The page map and a page's record name its owner: the heap returns such an object to its caller
//! ([`craton_heap::owned`]), which brings it here.
//!
//! **State.** No statics: [`caches::Caches`] and [`heaps::Heaps`] are values, all zeros at first;
//! `over(&heap)` joins one with its heap for a call. Handles come from one kind of table (`slots`).
//!
//! **Threads.** Any thread may call anything. Order of locks: table → heap or cache → arrays → the
//! heap's. A fork takes them all.
//!
//! **Failure.** Null or an error, everything as before; a bad handle or pointer is a
//! [`craton_heap::Misuse`].
#![no_std]

pub mod caches;
#[cfg(all(test, not(loom)))]
#[allow(dead_code)]
#[path = "../../heap/src/tests/ground.rs"]
mod ground;
pub mod heaps;
pub mod hints;
pub mod process;
mod slots;
#[cfg(all(test, not(loom)))]
#[path = "tests/world.rs"]
mod world;

#[cfg(test)]
extern crate std;
