//! Offsets of the state of slabs of two sizes, for readers of another process.

use super::{HALF, MAX_OLD, Morph, Morphs, Part, STARTS};
use core::mem::offset_of;
use craton_base::Table;

impl Morph {
    /// Offsets in bytes, and constants of the layout.
    pub const SHAPE: [(&'static str, usize); 17] = [
        ("morph.bytes", size_of::<Self>()),
        ("morph.live", offset_of!(Self, live)),
        ("morph.starts", offset_of!(Self, starts)),
        ("morph.parts", offset_of!(Self, parts)),
        ("morph.slab", offset_of!(Self, slab)),
        ("morph.new", offset_of!(Self, new)),
        ("morph.slab_bytes", offset_of!(Self, bytes)),
        ("morph.part_bytes", offset_of!(Self, part_bytes)),
        ("morph.to", offset_of!(Self, to)),
        ("morph.max_old", MAX_OLD),
        ("morph.half", HALF),
        ("morph.max_starts", STARTS),
        ("morph.part", size_of::<Part>()),
        ("morph.part.old", offset_of!(Part, old)),
        ("morph.part.places", offset_of!(Part, places)),
        ("morph.part.from", offset_of!(Part, from)),
        ("morph.count", offset_of!(Self, count)),
    ];
}

impl Morphs {
    /// Offsets in bytes.
    pub const SHAPE: [(&'static str, usize); 2] = [
        ("morphs.entries", offset_of!(Self, entries) + Table::<Morph>::SHAPE[0]),
        ("morphs.begun", offset_of!(Self, begun)),
    ];
}
