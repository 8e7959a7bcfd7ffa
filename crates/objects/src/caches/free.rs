//! The slow path of a free.
//!
//! **Unsafe.** Frees and marks objects.

use super::Over;
use super::arrays::MOST_FILL;
use super::cache::Cache;
use crate::process::{Process, Watch};
use core::ptr::null_mut;
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;
use craton_heap::owned::CACHE_CLASS;
use craton_heap::size_class::OWNED;
use craton_heap::{Found, Misuse};
use craton_os::rseq::Rseq;

/// Should not stay with a program that sleeps.
const MUCH: usize = 16 << 20;

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    /// # Safety
    /// If `object` is a live object of the cache, it is given up.
    pub unsafe fn free(&self, handle: usize, object: *mut u8) -> Result<(), Misuse> {
        let (id, slot) = self.caches.slots.find(handle)?;
        if P::is_buffer(id, object) {
            self.free_watched(slot, handle, object);
            return Ok(());
        }
        P::within(|| {
            let rseq = self.caches.arrays.sequences();
            let mut cache = slot.lock_counted(handle)?;
            self.check_object(&cache, object)?;
            self.set_mark(object, true);
            if let Some(rseq) = rseq.filter(|_| !cache.closed && cache.waiters == 0)
                && self.free_to_array(&mut cache, handle, rseq, object)
            {
                return Ok(());
            }
            let constructed = cache.constructor.is_some();
            self.free_locked(&mut cache, object, constructed);
            let wait = cache.waiters > 0;
            drop(cache);
            slot.announce(wait);
            Ok(())
        })
    }

    fn free_to_array(&self, cache: &mut Cache, handle: usize, rseq: &Rseq, object: *mut u8) -> bool {
        let (arrays, rounds) = (&self.caches.arrays, cache.pace(false));
        if !arrays.open(rseq, cache.id, handle, 2 * cache.rounds()) {
            return false;
        }
        if arrays.push(rseq, handle, object) {
            return true;
        }
        let mut objects = [null_mut(); MOST_FILL];
        let n = arrays.pop_many(rseq, handle, &mut objects[..rounds]);
        cache.moved += n as u64;
        self.store(cache, &objects[..n]);
        arrays.push(rseq, handle, object)
    }

    /// Frees objects to slabs without memory for magazines; returns whether all are in the depot.
    pub(super) fn store(&self, cache: &mut Cache, objects: &[*mut u8]) -> bool {
        let (depot, _, mut supply) = self.parts(cache);
        // SAFETY: `parts` returns the cache's one supply.
        let stored = unsafe { depot.store(objects, &mut supply) };
        for object in &objects[stored..] {
            self.free_locked(cache, *object, cache.constructor.is_some());
        }
        if cache.free_bytes() >= MUCH {
            P::holds_much();
        }
        stored == objects.len()
    }

    pub(super) fn free_locked(&self, cache: &mut Cache, object: *mut u8, constructed: bool) {
        if cache.is_watched() {
            return cache.free_buffer::<P>(object);
        }
        // SAFETY: of this cache's arrays, or given up by the caller.
        if unsafe { cache.slabs.free(object, constructed) }.is_err() {
            P::corrupt(object, Misuse::Unallocated);
        }
    }

    fn cache_of(&self, object: *mut u8) -> Option<u16> {
        let page = self.heap.page_of(object as usize)?;
        let (cache, class) = self.heap.record(page).heap();
        (self.heap.mark(page) == OWNED && class == CACHE_CLASS).then_some(cache)
    }

    fn check_object(&self, cache: &Cache, object: *mut u8) -> Result<(), Misuse> {
        let size = cache.size;
        let Some(its) = self.cache_of(object) else {
            return Err(match self.heap.find(object) {
                Found::Bad(misuse) => misuse,
                _ => Misuse::NotCached { given: cache.id },
            });
        };
        if its != cache.id {
            return Err(Misuse::OtherCache { its, given: cache.id });
        }
        let entry = self.caches.entries.of(object as usize);
        let is_marked = || entry.is_some_and(|entry| entry.is_marked(self.heap.seal(OWNED.into()), object));
        match cache.slabs.place_of(object) {
            None => Err(Misuse::Unallocated),
            Some(place) if place.offset > 0 => Err(Misuse::Inside { offset: place.offset, size }),
            Some(place) if !place.out || is_marked() => Err(Misuse::Freed { size }),
            Some(_) => Ok(()),
        }
    }
}
