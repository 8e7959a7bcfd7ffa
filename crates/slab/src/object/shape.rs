//! Offsets in an object cache, for readers of another process.

use super::cache::ObjectSlabs;
use super::depot::Depot;
use super::record::{Record, Slab};
use super::table::{OWN, SlabTable};
use crate::slab::{SlabStats, Slabs};
use core::mem::offset_of;

impl ObjectSlabs {
    /// The table has records' addresses, except for the lowest bit.
    pub const SHAPE: [(&'static str, usize); 15] = [
        ("objects.size", offset_of!(Self, layout.size)),
        ("objects.stride", offset_of!(Self, layout.stride)),
        ("objects.capacity", offset_of!(Self, layout.capacity)),
        ("objects.words", offset_of!(Self, layout.words)),
        ("objects.constructed", offset_of!(Self, layout.constructed)),
        ("objects.slab_bytes", offset_of!(Self, layout.slab_bytes)),
        ("objects.slabs", offset_of!(Self, slabs) + offset_of!(Slabs<Slab>, stats) + offset_of!(SlabStats, slabs)),
        ("objects.table.own", offset_of!(Self, table) + offset_of!(SlabTable, own)),
        ("objects.table.own.places", OWN),
        ("objects.table.far", offset_of!(Self, table) + offset_of!(SlabTable, far)),
        ("objects.table.more_bits", offset_of!(Self, table) + offset_of!(SlabTable, more_bits)),
        ("object.record.slab", offset_of!(Record, slab)),
        ("object.record.start", offset_of!(Record, start)),
        ("object.record.used", offset_of!(Record, used)),
        // Bits "out" follow, then bits "constructed".
        ("object.record.bytes", size_of::<Record>()),
    ];
}

impl Depot {
    pub const OBJECTS: usize = offset_of!(Self, objects);
}
