//! State of slabs of two sizes, for readers of another process.

use super::{Morph, Morphs, UNIT};
use core::mem::offset_of;
use craton_base::Table;

impl Morph {
    pub const SHAPE: [(&'static str, usize); 12] = [
        ("morph.bytes", size_of::<Self>()),
        ("morph.starts", offset_of!(Self, starts)),
        ("morph.live", offset_of!(Self, live)),
        ("morph.slab", offset_of!(Self, slab)),
        ("morph.new", offset_of!(Self, new)),
        ("morph.old", offset_of!(Self, old)),
        ("morph.head", offset_of!(Self, head)),
        ("morph.count", offset_of!(Self, count)),
        ("morph.from", offset_of!(Self, from)),
        ("morph.to", offset_of!(Self, to)),
        ("morph.pages", offset_of!(Self, pages)),
        ("morph.unit", UNIT as usize),
    ];
}

impl Morphs {
    pub const SHAPE: [(&'static str, usize); 2] = [
        ("morphs.entries", offset_of!(Self, entries) + Table::<Morph>::SHAPE[0]),
        ("morphs.begun", offset_of!(Self, begun)),
    ];
}
