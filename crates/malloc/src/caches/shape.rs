//! Where what is known of object caches lies, for those who read the memory of another process.

use super::arrays::{ARRAY, Arrays, COUNT_BITS};
use super::pages::{Entries, Entry, GRANULE};
use super::slot::{Cache, IN_ENTRY, Slot};
use super::{CLASS, Caches};
use core::mem::offset_of;
use craton_os::Mutex;
use craton_os::rseq::{AREA, AREAS, Counting};
use craton_slab::object::Depot;

/// Where a cache lies in its slot.
const CACHE: usize = offset_of!(Slot, cache) + Mutex::<Cache>::SHAPE[1];

impl Caches {
    /// Offsets and sizes in bytes, and what some words mean.
    pub(crate) const SHAPE: [(&'static str, usize); 33] = [
        // Class that the records of caches' pages name.
        ("caches.class", CLASS as usize),
        ("caches.base", offset_of!(Self, base)),
        ("caches.used", offset_of!(Self, used)),
        ("caches.entries", offset_of!(Self, entries) + offset_of!(Entries, first)),
        ("caches.entries.pages", offset_of!(Self, entries) + offset_of!(Entries, pages)),
        ("caches.entry.bytes", size_of::<Entry>()),
        ("caches.entry.cache", offset_of!(Entry, cache)),
        ("caches.entry.marks", offset_of!(Entry, marks)),
        // Bytes of a page that one mark stands for.
        ("caches.entry.granule", GRANULE),
        // Where the first area lies, if that is above 1, and how many there are, one behind the other.
        ("caches.areas", offset_of!(Self, arrays) + offset_of!(Arrays, areas)),
        ("caches.areas.end", offset_of!(Self, arrays) + offset_of!(Arrays, end)),
        ("caches.areas.bytes", AREA * AREAS),
        ("caches.area.bytes", AREA),
        ("caches.array.bytes", ARRAY),
        ("caches.array.owner", offset_of!(Counting, owner)),
        ("caches.array.word", offset_of!(Counting, word)),
        ("caches.array.count.mask", COUNT_BITS as usize),
        ("caches.array.slots", offset_of!(Counting, slots)),
        ("caches.slot.bytes", size_of::<Slot>()),
        ("caches.slot.handle", offset_of!(Slot, handle)),
        ("caches.slot.name", offset_of!(Slot, name)),
        ("caches.slot.mark_at", offset_of!(Slot, mark_at)),
        // As a distance of marks: they lie in the pages' entries.
        ("caches.mark.in_entry", IN_ENTRY),
        ("caches.slot.lock", offset_of!(Slot, cache) + Mutex::<Cache>::SHAPE[0]),
        ("caches.slot.slabs", CACHE + offset_of!(Cache, slabs)),
        ("caches.slot.in_depot", CACHE + offset_of!(Cache, depot) + Depot::OBJECTS),
        ("caches.slot.size", CACHE + offset_of!(Cache, size)),
        ("caches.slot.constructor", CACHE + offset_of!(Cache, constructor)),
        ("caches.slot.argument", CACHE + offset_of!(Cache, argument)),
        ("caches.slot.held", CACHE + offset_of!(Cache, held)),
        ("caches.slot.built", CACHE + offset_of!(Cache, built)),
        ("caches.slot.destroyed", CACHE + offset_of!(Cache, destroyed)),
        ("caches.slot.refused", CACHE + offset_of!(Cache, refused)),
    ];
}
