use super::cache::{Cache, CacheSlots};
use super::{Caches, NAME_MAX};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use craton_base::Clock;
use craton_heap::Misuse;

craton_tables::count_struct! { cache,
    /// Bonwick94 §3.1; the layout of `craton_cache_stats` from field 2 on.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(C)]
    pub struct CacheStats {
        /// Ended by a 0.
        pub name: [u8; NAME_MAX + 1],
    }
}

impl CacheStats {
    pub fn name(&self) -> &str {
        name_of(&self.name)
    }
}

pub fn name_of(name: &[u8; NAME_MAX + 1]) -> &str {
    let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    core::str::from_utf8(&name[..len]).unwrap_or_default()
}

impl<C: Clock, P: Process + Watch> Caches<C, P> {
    pub fn stats(&self, handle: usize) -> Result<CacheStats, Misuse> {
        let (_, slot, cache) = self.slots.lock(handle)?;
        Ok(self.stats_of(slot, &cache))
    }

    pub fn each(&self, mut each: impl FnMut(CacheStats)) {
        for (_, slot) in self.slots.living() {
            if let Ok(stats) = self.stats(slot.handle()) {
                each(stats);
            }
        }
    }

    fn stats_of(&self, slot: &Slot<CacheSlots>, cache: &Cache) -> CacheStats {
        let (slabs, depot, counts) = (&cache.slabs, cache.depot.stats(), cache.slabs.stats());
        let in_arrays = self.arrays.count(cache.id) as u64;
        let hits = self.arrays.taken(cache.id).wrapping_sub(cache.taken_before).wrapping_sub(cache.moved);
        CacheStats {
            id: cache.id.into(),
            object_bytes: cache.size as u64,
            buffer_bytes: slabs.layout().stride() as u64,
            in_use: slabs.in_use().saturating_sub(in_arrays + depot.objects) + cache.buffers,
            total: slabs.total() + cache.buffers,
            memory_bytes: cache.held.bytes().0 as u64 + cache.buffers * cache.layout.stride() as u64,
            allocations: hits + cache.slow_allocs,
            magazine_hits: hits,
            failures: cache.refused,
            constructor_failures: cache.failed,
            constructed: cache.built,
            destroyed: cache.destroyed,
            slabs: counts.slabs.into(),
            partial: slabs.partial().into(),
            complete: slabs.complete().into(),
            full: (counts.slabs - slabs.partial() - slabs.complete()).into(),
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
