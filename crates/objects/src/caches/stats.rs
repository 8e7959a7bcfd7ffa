//! Counts of object caches.

use super::cache::{Cache, CacheSlots};
use super::{Caches, NAME_MAX};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use craton_base::Clock;
use craton_heap::Misuse;

/// Counts of one cache (Bonwick94 §3.1). The layout is that of `struct craton_cache_stats` behind its first field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct CacheStats {
    /// Its number, unique among living caches.
    pub id: u64,
    /// Bytes of an object, as asked for.
    pub object_bytes: u64,
    /// Bytes from one object to the next.
    pub buffer_bytes: u64,
    /// Live objects.
    pub in_use: u64,
    /// Objects that the slabs have room for.
    pub total: u64,
    /// Bytes of slabs and magazines.
    pub memory_bytes: u64,
    /// Objects handed out since the cache was made.
    pub allocations: u64,
    /// Of these, those that a processor's array had.
    pub magazine_hits: u64,
    /// Requests that got nothing.
    pub failures: u64,
    /// Constructors that failed.
    pub constructor_failures: u64,
    /// Objects constructed, and destroyed.
    pub constructed: u64,
    /// See [`CacheStats::constructed`].
    pub destroyed: u64,
    /// Slabs.
    pub slabs: u64,
    /// Slabs with some objects out of them.
    pub partial: u64,
    /// Slabs with none.
    pub complete: u64,
    /// Slabs with all.
    pub full: u64,
    /// Free objects in processors' arrays.
    pub in_arrays: u64,
    /// Free objects in the depot.
    pub in_depot: u64,
    /// Objects that an array and the depot exchange at a time.
    pub rounds: u64,
    /// Slow calls that had to wait for the cache's lock.
    pub contended: u64,
    /// Objects that `prefill` has promised.
    pub reserved: u64,
    /// Objects that there may be, free ones included; 0 for no limit.
    pub limit_objects: u64,
    /// Bytes that slabs may take; 0 for no limit.
    pub limit_bytes: u64,
    /// Its name, ended by a 0.
    pub name: [u8; NAME_MAX + 1],
}

/// How many numbers there are.
pub const NUMBERS: usize = 23;

impl CacheStats {
    /// The numbers, by name.
    pub fn numbers(&self) -> [(&'static str, u64); NUMBERS] {
        [
            ("id", self.id),
            ("object_bytes", self.object_bytes),
            ("buffer_bytes", self.buffer_bytes),
            ("in_use", self.in_use),
            ("total", self.total),
            ("memory_bytes", self.memory_bytes),
            ("allocations", self.allocations),
            ("magazine_hits", self.magazine_hits),
            ("failures", self.failures),
            ("constructor_failures", self.constructor_failures),
            ("constructed", self.constructed),
            ("destroyed", self.destroyed),
            ("slabs", self.slabs),
            ("partial", self.partial),
            ("complete", self.complete),
            ("full", self.full),
            ("in_arrays", self.in_arrays),
            ("in_depot", self.in_depot),
            ("rounds", self.rounds),
            ("contended", self.contended),
            ("reserved", self.reserved),
            ("limit_objects", self.limit_objects),
            ("limit_bytes", self.limit_bytes),
        ]
    }

    /// The name.
    pub fn name(&self) -> &str {
        name_of(&self.name)
    }
}

/// The text of a name.
pub fn name_of(name: &[u8; NAME_MAX + 1]) -> &str {
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    core::str::from_utf8(&name[..len]).unwrap_or_default()
}

impl<C: Clock, P: Process + Watch> Caches<C, P> {
    /// Counts of a cache.
    pub fn stats(&self, handle: usize) -> Result<CacheStats, Misuse> {
        let (_, slot, cache) = self.slots.lock(handle)?;
        Ok(self.stats_of(slot, &cache))
    }

    /// Counts of each living cache, by number.
    pub fn each(&self, mut each: impl FnMut(CacheStats)) {
        for (_, slot) in self.slots.living() {
            if let Ok(stats) = self.stats(slot.handle()) {
                each(stats);
            }
        }
    }

    fn stats_of(&self, slot: &Slot<CacheSlots>, cache: &Cache) -> CacheStats {
        let (slabs, depot) = (cache.slabs.stats(), cache.depot.stats());
        let in_arrays = self.arrays.count(cache.id) as u64;
        let hits = self.arrays.taken(cache.id).wrapping_sub(cache.taken_before).wrapping_sub(cache.moved);
        CacheStats {
            id: cache.id.into(),
            object_bytes: cache.size as u64,
            buffer_bytes: slabs.buffer_bytes as u64,
            in_use: slabs.in_use.saturating_sub(in_arrays + depot.objects) + cache.buffers,
            total: slabs.total + cache.buffers,
            memory_bytes: cache.held.bytes().0 as u64 + cache.buffers * cache.layout.stride() as u64,
            allocations: hits + cache.slow_allocs,
            magazine_hits: hits,
            failures: cache.refused,
            constructor_failures: cache.failed,
            constructed: cache.built,
            destroyed: cache.destroyed,
            slabs: slabs.slabs.into(),
            partial: slabs.partial.into(),
            complete: slabs.complete.into(),
            full: slabs.full.into(),
            in_arrays,
            in_depot: depot.objects,
            rounds: cache.rounds() as u64,
            contended: depot.contended,
            reserved: cache.reserved as u64,
            limit_objects: cache.limit_objects as u64,
            limit_bytes: cache.limit_pages.bytes().0 as u64,
            name: slot.shared.name(),
        }
    }
}
