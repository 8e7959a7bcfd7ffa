//! The limit on a cache's constructed objects: at the limit a request gets no raw one.
//!
//! **Unsafe.** Allocates from slabs; links raw objects through their memory.

use super::Over;
use super::cache::Cache;
use crate::process::{Process, Watch};
use core::ptr::null_mut;
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;
use craton_slab::object::Taken;

impl Cache {
    fn is_at_limit(&self) -> bool {
        let there = self.built - self.destroyed + u64::from(self.building);
        self.limit_objects > 0 && self.constructor.is_some() && there >= self.limit_objects as u64
    }

    pub(super) fn begin_building(&mut self) {
        self.building += u32::from(self.constructor.is_some());
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    pub(super) fn alloc_from_slabs(&self, cache: &mut Cache) -> Option<Taken> {
        let is_at_limit = cache.is_at_limit();
        let (_, slabs, mut supply) = self.parts(cache);
        if !is_at_limit {
            // SAFETY: `parts` returns the cache's one supply.
            return unsafe { slabs.alloc(&mut supply) };
        }
        let (mut found, mut raws) = (None, null_mut::<u8>());
        while found.is_none() && slabs.in_use() < slabs.total() {
            // SAFETY: as above.
            match unsafe { slabs.alloc(&mut supply) } {
                // SAFETY: just allocated, with at least a word.
                Some(Taken::Raw(object)) => unsafe {
                    object.cast::<*mut u8>().write(raws);
                    raws = object;
                },
                taken => found = taken,
            }
        }
        while !raws.is_null() {
            // SAFETY: linked above.
            let freed = unsafe {
                let object = raws;
                raws = object.cast::<*mut u8>().read();
                slabs.free(object, false)
            };
            debug_assert_eq!(freed, Ok(()), "the object came from there");
        }
        found
    }
}
