//! Caches of free objects in front of the slabs, so that the common malloc and free take no lock: threads' own, and processors'.

pub(crate) mod processor;
pub mod thread;
