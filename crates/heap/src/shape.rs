//! For readers of another process's memory.

use crate::heap::{Heap, Layout};
use crate::hooks::Hooks;
use crate::huge::HugeTable;
use crate::length::SpanLength;
use crate::mark::Key;
use crate::page_heap::PageHeap;
use crate::page_map::PageMap;
use crate::record::PageRecord;
use crate::shard::{Class, Shard, Transfer, Waiting};
use core::mem::offset_of;
use craton_base::{Clock, Platform, Table};
use craton_os::Mutex;
use craton_slab::{Morphs, SlabCache};

const LAYOUT: [(&str, usize); 9] = [
    ("layout.base", offset_of!(Layout, base)),
    ("layout.map", offset_of!(Layout, map) + PageMap::MARKS),
    ("layout.records", offset_of!(Layout, records) + Table::<PageRecord>::SHAPE[0]),
    ("layout.lengths", offset_of!(Layout, lengths) + Table::<SpanLength>::SHAPE[0]),
    ("layout.secrets", offset_of!(Layout, key) + Key::SECRETS),
    ("layout.factor", offset_of!(Layout, key) + Key::FACTOR),
    ("layout.on_slab", offset_of!(Layout, key) + Key::ON_SLAB),
    ("layout.more_shards", offset_of!(Layout, more_shards)),
    ("layout.hardened", offset_of!(Layout, hardened)),
];

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub const SHAPE: [(&'static str, usize); 30] = [
        ("heap.bytes", size_of::<Self>()),
        ("heap.granted_pages", offset_of!(Self, granted_pages)),
        ("heap.layout", offset_of!(Self, layout)),
        LAYOUT[0],
        LAYOUT[1],
        LAYOUT[2],
        LAYOUT[3],
        LAYOUT[4],
        LAYOUT[5],
        LAYOUT[6],
        LAYOUT[7],
        LAYOUT[8],
        ("heap.shards", offset_of!(Self, shards)),
        ("shard.bytes", size_of::<Shard>()),
        ("shard.classes", offset_of!(Shard, classes)),
        ("shard.class.bytes", size_of::<Class>()),
        ("shard.class.lock", offset_of!(Class, 0) + Mutex::<SlabCache>::SHAPE[0]),
        ("shard.class.cache", offset_of!(Class, 0) + Mutex::<SlabCache>::SHAPE[1]),
        ("shard.transfer", offset_of!(Shard, transfer)),
        ("transfer.class.bytes", Transfer::SHAPE[0]),
        ("transfer.class.slots", Transfer::SHAPE[1]),
        ("shard.waiting", offset_of!(Shard, waiting)),
        ("waiting.class.bytes", Waiting::SHAPE[0]),
        ("waiting.class.places", Waiting::SHAPE[1]),
        ("waiting.places", Waiting::SHAPE[2]),
        ("heap.trackers", offset_of!(Self, pages) + Mutex::<PageHeap<F, C>>::SHAPE[1] + PageHeap::<F, C>::TRACKERS),
        ("heap.huge", offset_of!(Self, huge) + Mutex::<HugeTable>::SHAPE[1]),
        ("heap.huge.lock", offset_of!(Self, huge) + Mutex::<HugeTable>::SHAPE[0]),
        ("heap.morphs", offset_of!(Self, morphs) + Mutex::<Morphs>::SHAPE[1]),
        ("heap.morphs.lock", offset_of!(Self, morphs) + Mutex::<Morphs>::SHAPE[0]),
    ];
}
