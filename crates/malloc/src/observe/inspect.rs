//! The table for readers of the process's memory: of a stopped process or a core file.
//!
//! **What.** Exported as `craton_inspect`: addresses, field offsets, sizes and word layouts by
//! name, taken from the structures. So a reader (`craton core`) has no built-in layout, and reads
//! other builds.
//!
//! **State.**
//! ```text
//! | magic (8) | version (4) | bytes of the table (4) |
//! | entries: where they begin (4), how many (4), bytes of one (4) | classes: likewise (12) |
//! | entries: name (32, ended by zeros) · value (8) | classes: object bytes · pages · objects · batch · count · array (4 each) |
//! ```
//! Entries have no order, and readers skip unknown ones: a new entry needs no new version, a
//! changed meaning does. The entry `self`, the table's address, tells it from copies.
//!
//! **Cost.** 10 KiB of constants; no instruction.
//!
//! **Unsafe.** Exports the table under a fixed name; its addresses are for others.

use crate::govern::background::thread::HelperThread;
use crate::here::Here;
use crate::observe::mailbox::Mailbox;
use crate::profile;
use crate::profile::Profile;
use crate::statics::{
    APART, BACKGROUND, HEAP, HEAPS, KIT, MAILBOX, OBJECT_CACHES, PROCESSOR_CACHES, PROFILE, REGISTRY, SEGMENT, TheHeap,
};
use crate::thread::nested::area::Area;
use crate::thread::registry::Registry;
use core::mem::offset_of;
use core::ptr::{null, without_provenance};
use craton_base::{HUGEPAGE_SIZE, PAGE_SIZE};
use craton_heap::cpu_cache::ProcessorCaches;
use craton_heap::huge::HugeTable;
use craton_heap::huge::Kept;
use craton_heap::length::SpanLength;
use craton_heap::page_map::{LIST_BYTES, PageMap};
use craton_heap::record::PageRecord;
use craton_heap::shard::SHARDS;
use craton_heap::size_class::{self, CLASSES, LARGE, MORPHED, OWNED};
use craton_heap::thread_cache::ThreadCache;
use craton_kit::Kit;
use craton_kit::audit::Log;
use craton_objects::caches::Caches;
use craton_objects::heaps::Heaps;
use craton_os::{CoarseClock, Mutex};
use craton_pages::Tracker;
use craton_slab::object::ObjectSlabs;
use craton_slab::{Morph, Morphs, SlabCache, SlabRecord};

/// First word: "\0CRATONI", little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"\0CRATONI");
pub const VERSION: u32 = 1;
const NAME: usize = 32;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: [u8; NAME],
    value: *const u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Class {
    object_bytes: u32,
    pages: u32,
    capacity: u32,
    batch: u32,
    count_at: u32,
    array_at: u32,
}

#[repr(C, align(64))]
#[derive(Debug)]
pub struct Inspect {
    magic: u64,
    version: u32,
    bytes: u32,
    entries_at: u32,
    entries: u32,
    entry_bytes: u32,
    classes_at: u32,
    classes: u32,
    class_bytes: u32,
    all: [Entry; ENTRIES],
    geometry: [Class; CLASSES + 1],
}

// SAFETY: never written; others read its addresses.
unsafe impl Sync for Inspect {}

#[unsafe(export_name = "craton_inspect")]
pub static INSPECT: Inspect = Inspect {
    magic: MAGIC,
    version: VERSION,
    bytes: size_of::<Inspect>() as u32,
    entries_at: offset_of!(Inspect, all) as u32,
    entries: ENTRIES as u32,
    entry_bytes: size_of::<Entry>() as u32,
    classes_at: offset_of!(Inspect, geometry) as u32,
    classes: CLASSES as u32 + 1,
    class_bytes: size_of::<Class>() as u32,
    all: entries(),
    geometry: classes(),
};

const NUMBERS: [(&str, usize); 11] = [
    ("page.bytes", PAGE_SIZE),
    ("hugepage.bytes", HUGEPAGE_SIZE),
    // Factor of the page map's marks, and the bits that hold them.
    ("map.unit", LIST_BYTES),
    ("map.bits", PageMap::MARK_BITS),
    ("mark.large", LARGE as usize),
    ("mark.morphed", MORPHED as usize),
    ("mark.owned", OWNED as usize),
    ("shards.most", SHARDS),
    ("mailbox.text.most", Mailbox::TEXT),
    ("apart.bytes", Area::BYTES),
    ("segment.bytes", size_of_val(&SEGMENT)),
];

const ALL_CACHES: *const u8 =
    (&raw const REGISTRY).cast::<u8>().wrapping_add(Mutex::<Registry>::SHAPE[1] + Registry::FIRST);

const ADDRESSES: [(&str, *const u8); NAMED] = [
    ("self", (&raw const INSPECT).cast()),
    ("heap", (&raw const HEAP).cast()),
    ("thread.first", ALL_CACHES),
    ("processors", (&raw const PROCESSOR_CACHES).cast()),
    ("segment", (&raw const SEGMENT).cast()),
    ("mailbox", (&raw const MAILBOX).cast()),
    ("mailbox.nudge", HelperThread::nudge_at(&raw const BACKGROUND.thread)),
    ("apart", Area::parts(&raw const APART)[0]),
    ("apart.used", Area::parts(&raw const APART)[1]),
    ("later.first", Area::parts(&raw const APART)[2]),
    ("own", (&raw const HEAPS).cast()),
    ("caches", (&raw const OBJECT_CACHES).cast()),
    ("lists.end", craton_slab::end()),
    ("profile", (&raw const PROFILE).cast::<u8>().wrapping_add(Profile::AT)),
    ("profile.trusts", (&raw const PROFILE).cast::<u8>().wrapping_add(offset_of!(Profile, trusts))),
];

const KIT_PARTS: [(&str, usize); 6] = Kit::<Here>::PARTS;

const NAMED: usize = 15;

const SHAPES: [&[(&str, usize)]; 19] = [
    &NUMBERS,
    &TheHeap::SHAPE,
    &SlabRecord::SHAPE,
    &PageRecord::SHAPE,
    &SpanLength::SHAPE,
    &SlabCache::SHAPE,
    &Morphs::SHAPE,
    &Morph::SHAPE,
    &HugeTable::SHAPE,
    &Heaps::SHAPE,
    &ThreadCache::SHAPE,
    &ProcessorCaches::SHAPE,
    &Kept::SHAPE,
    &Caches::<CoarseClock, Here>::SHAPE,
    &ObjectSlabs::SHAPE,
    &craton_kit::SHAPE,
    &Log::SHAPE,
    &profile::tables::SHAPE,
    &Tracker::SHAPE,
];

const ENTRIES: usize = {
    let (mut n, mut i) = (NAMED + KIT_PARTS.len() + Mailbox::SHAPE.len(), 0);
    while i < SHAPES.len() {
        n += SHAPES[i].len();
        i += 1;
    }
    n
};

const fn entry(name: &str, value: *const u8) -> Entry {
    let (from, mut to, mut i) = (name.as_bytes(), [0; NAME], 0);
    // A zero ends it.
    assert!(from.len() < NAME);
    while i < from.len() {
        to[i] = from[i];
        i += 1;
    }
    Entry { name: to, value }
}

const fn entries() -> [Entry; ENTRIES] {
    let mut all = [const { entry("", null()) }; ENTRIES];
    let (mut n, mut i) = (0, 0);
    while i < NAMED + KIT_PARTS.len() {
        let (name, value) = if i < NAMED {
            ADDRESSES[i]
        } else {
            {
                let (name, at) = KIT_PARTS[i - NAMED];
                (name, (&raw const KIT).cast::<u8>().wrapping_add(at))
            }
        };
        all[n] = entry(name, value);
        (n, i) = (n + 1, i + 1);
    }
    let mut group = 0;
    while group <= SHAPES.len() {
        let shape: &[(&str, usize)] = if group < SHAPES.len() { SHAPES[group] } else { &Mailbox::SHAPE };
        i = 0;
        while i < shape.len() {
            all[n] = entry(shape[i].0, without_provenance(shape[i].1));
            (n, i) = (n + 1, i + 1);
        }
        group += 1;
    }
    all
}

const fn classes() -> [Class; CLASSES + 1] {
    const NONE: Class = Class { object_bytes: 0, pages: 0, capacity: 0, batch: 0, count_at: 0, array_at: 0 };
    let (mut all, mut class) = ([NONE; CLASSES + 1], 1);
    while class <= CLASSES {
        let (g, place) = (size_class::geometry(class), ProcessorCaches::place(class));
        all[class] = Class {
            object_bytes: g.object,
            pages: g.pages.0,
            capacity: g.capacity as u32,
            batch: size_class::batch(class),
            count_at: place.counts,
            array_at: place.slots,
        };
        class += 1;
    }
    all
}

#[cfg(test)]
mod tests;
