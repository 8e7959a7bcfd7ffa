//! Object caches, heaps with names, and hints: what a program makes for objects of its choice.
//!
//! **What.** Three layers over one heap ([`crate::heap`]), which knows of none of them: [`caches`] keep objects constructed while
//! they are free; [`heaps`] are destroyed whole; [`hints`] are heaps of the library, one for each kind of use. A page names its owner
//! in the page map, so that the heap finds such an object and says whose it is; the caller brings it here.
//!
//! **State.** No statics: [`caches::Caches`] and [`heaps::Heaps`] are values, all zeros at first. `over(&heap)` joins one with its heap
//! for a call. What they ask of the process stands in [`process`].

pub mod caches;
pub mod heaps;
pub mod hints;
pub mod process;
mod slots;
#[cfg(all(test, not(loom)))]
mod world;
