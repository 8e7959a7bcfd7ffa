//! Caches of free objects in front of the slabs, so that the common malloc and free take no lock.

pub mod thread;
