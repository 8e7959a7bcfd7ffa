//! Caches of objects that programs describe: see the modules.
mod depot;
mod layout;
mod slab;
mod slabs;
mod supply;
mod table;
mod trusted;
mod working_set;

pub use depot::{Depot, DepotStats, Magazine};
pub use layout::{BadLayout, ObjectLayout};
pub use slabs::{BadObject, Detached, Many, ObjectPlace, ObjectSlabs, ObjectStats, StillOut, Taken};
pub use supply::{BufferPages, FramePages, PageSupplier, SpanPages};

#[cfg(test)]
mod tests;
