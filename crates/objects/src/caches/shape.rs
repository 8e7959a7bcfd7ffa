//! Fields of object caches, for `craton core`.

use super::Caches;
use super::arrays::{ARRAY, Arrays, COUNT_BITS};
use super::cache::{Cache, CacheSlots, IN_ENTRY, Shared};
use super::pages::{Entries, Entry, GRANULE};
use crate::process::{Process, Watch};
use crate::slots::{Slot, Slots};
use core::mem::offset_of;
use craton_base::Clock;
use craton_heap::owned::CACHE_CLASS;
use craton_os::rseq::{AREA, AREAS, Counting};
use craton_slab::object::Depot;

const SLOT: [usize; 5] = Slot::<CacheSlots>::SHAPE;
const CACHE: usize = SLOT[4];

impl<C: Clock, P: Process + Watch> Caches<C, P> {
    pub const SHAPE: [(&'static str, usize); 33] = [
        // In the records of caches' pages.
        ("caches.class", CACHE_CLASS as usize),
        ("caches.base", offset_of!(Self, slots) + Slots::<CacheSlots>::SHAPE[0]),
        ("caches.used", offset_of!(Self, slots) + Slots::<CacheSlots>::SHAPE[1]),
        ("caches.entries", offset_of!(Self, entries) + offset_of!(Entries, first)),
        ("caches.entries.pages", offset_of!(Self, entries) + offset_of!(Entries, pages)),
        ("caches.entry.bytes", size_of::<Entry>()),
        ("caches.entry.cache", offset_of!(Entry, cache)),
        ("caches.entry.marks", offset_of!(Entry, marks)),
        // Bytes of a mark.
        ("caches.entry.granule", GRANULE),
        // The first area, if above 1; further ones follow.
        ("caches.areas", offset_of!(Self, arrays) + offset_of!(Arrays<P>, areas)),
        ("caches.areas.end", offset_of!(Self, arrays) + offset_of!(Arrays<P>, end)),
        ("caches.areas.bytes", AREA * AREAS),
        ("caches.area.bytes", AREA),
        ("caches.array.bytes", ARRAY),
        ("caches.array.owner", offset_of!(Counting, owner)),
        ("caches.array.word", offset_of!(Counting, word)),
        ("caches.array.count.mask", COUNT_BITS as usize),
        ("caches.array.slots", offset_of!(Counting, slots)),
        ("caches.slot.bytes", size_of::<Slot<CacheSlots>>()),
        ("caches.slot.handle", SLOT[0]),
        ("caches.slot.name", SLOT[2] + offset_of!(Shared, name)),
        ("caches.slot.mark_at", SLOT[2] + offset_of!(Shared, mark_at)),
        // A mark's distance: it is in the page's entry.
        ("caches.mark.in_entry", IN_ENTRY),
        ("caches.slot.lock", SLOT[3]),
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
