//! Homes for objects that a program chooses, over one heap ([`craton_heap`]) that knows none:
//! - [`caches`]: objects of one size, kept constructed while free;
//! - [`heaps`]: objects of all sizes, destroyed together;
//! - [`hints`]: heaps of the library, one for each kind of use.
//!
//! The heap returns such an object to its caller ([`craton_heap::owned`]), which brings it here.
//!
//! **Threads.** Locks: table → heap or cache → arrays → the heap's.
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
