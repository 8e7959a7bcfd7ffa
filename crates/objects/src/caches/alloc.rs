//! The slow path of an allocation. Each step holds the cache's lock; the constructor runs between
//! two steps.
//!
//! **Unsafe.** Calls the program's functions, and marks objects.

use super::arrays::{MOST_FILL, Which};
use super::building::Building;
use super::cache::{Cache, CacheSlots};
use super::{Fault, Over};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Platform};
use craton_heap::Misuse;
use craton_heap::hooks::Hooks;
use craton_heap::size_class::OWNED;
use craton_os::process;
use craton_os::rseq::Rseq;
use craton_slab::object::Taken;

/// A waiter looks this often for memory freed elsewhere, which is not announced.
const RETRY_NS: u64 = 10_000_000;
/// A waiter looks this often for a free of this cache, which is announced.
const SLEEP_NS: u64 = 1_000_000_000;

/// Construction failed or unwound: the object is raw again.
struct Unbuilt<'a, 'o, F: Platform, C: Clock, H: Hooks, P: Process + Watch> {
    over: &'a Over<'o, F, C, H, P>,
    slot: &'a Slot<CacheSlots>,
    object: *mut u8,
    asked: bool,
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Drop for Unbuilt<'_, '_, F, C, H, P> {
    fn drop(&mut self) {
        let saved = process::errno();
        P::within(|| {
            let mut cache = self.slot.locked.lock();
            cache.failed += 1;
            cache.building -= 1;
            if self.asked {
                cache.slow_allocs -= 1;
                cache.refused += 1;
            }
            if !cache.is_watched() {
                self.over.set_mark(self.object, true);
            }
            self.over.free_locked(&mut cache, self.object, false);
            let wait = cache.waiters > 0;
            drop(cache);
            self.slot.announce(wait);
        });
        process::set_errno(saved);
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    pub fn alloc(&self, handle: usize, wait_ns: Option<u64>) -> Result<*mut u8, Fault> {
        let (_, slot) = self.caches.slots.find(handle)?;
        if Building::<P>::is_for(handle) {
            return Err(Fault::Recursive);
        }
        let rseq = self.caches.arrays.sequences();
        let clock = &self.caches.clock;
        let until = wait_ns.map(|ns| clock.now_ns().saturating_add(ns));
        let mut retried = false;
        loop {
            let times = slot.shared.freed.times();
            let (taken, sleep_ns) = P::within(|| {
                let mut cache = slot.lock_counted(handle)?;
                let found = self.alloc_or_flush(slot, &mut cache, rseq, until.is_some() && retried);
                cache.slow_allocs += u64::from(found.0.is_some());
                Ok::<_, Misuse>(found)
            })?;
            if let Some(taken) = taken {
                return self.hand_out(slot, handle, taken);
            }
            if !core::mem::replace(&mut retried, true) {
                // Once: the program may have objects to free, threads' caches memory.
                self.reclaim(slot, handle);
                P::within(P::make_room);
                continue;
            }
            let left = until.map_or(0, |until| until.saturating_sub(clock.now_ns()));
            if left > 0 {
                // A free since `times` was read saw the waiter: the wait ends at once.
                slot.shared.freed.wait(times, left.min(sleep_ns));
            }
            let mut cache = slot.locked.lock();
            cache.waiters -= u32::from(until.is_some());
            if left == 0 {
                cache.refused += 1;
                return Err(if until.is_some() { Fault::TimedOut } else { Fault::NoMemory });
            }
        }
    }

    /// Counts a waiter if there is no object and the caller `waits`; arrays stay closed (K4). Also
    /// returns how long it may sleep.
    fn alloc_or_flush(
        &self,
        slot: &Slot<CacheSlots>,
        cache: &mut Cache,
        rseq: Option<&Rseq>,
        waits: bool,
    ) -> (Option<Taken>, u64) {
        let rseq = rseq.filter(|_| !cache.closed && cache.waiters == 0);
        if let Some(taken) = self.alloc_locked(slot, cache, rseq) {
            return (Some(taken), 0);
        }
        let is_closed = self.flush(cache, false);
        let taken = self.alloc_locked(slot, cache, None);
        cache.waiters += u32::from(taken.is_none() && waits);
        // Only the cache's own limit ends by a free that is announced here.
        let is_full = cache.limit_objects > 0 && cache.live() >= cache.limit_objects as u64;
        (taken, if is_closed && is_full { SLEEP_NS } else { RETRY_NS })
    }

    /// Fills this processor's array too.
    fn alloc_locked(&self, slot: &Slot<CacheSlots>, cache: &mut Cache, rseq: Option<&Rseq>) -> Option<Taken> {
        if cache.is_watched() {
            let buffer = cache.alloc_buffer::<P>();
            if buffer.is_null() {
                return None;
            }
            cache.begin_building();
            return Some(Taken::Raw(buffer));
        }
        let mut objects = [null_mut(); MOST_FILL];
        let (id, rounds, constructed) = (cache.id, cache.pace(true), cache.constructor.is_some());
        let (limit, handle) = (cache.limit_objects, slot.handle());
        let rseq = rseq.filter(|rseq| self.caches.arrays.open(rseq, id, handle, 2 * cache.rounds()));
        let (depot, slabs, mut supply) = self.parts(cache);
        if rseq.is_some() {
            // SAFETY: `parts` returns the cache's one supply.
            let n = unsafe { depot.fetch(&mut objects[..rounds], &mut supply) };
            if n > 0 {
                self.fill_array(cache, handle, rseq, &objects[..n - 1]);
                return Some(Taken::Constructed(objects[n - 1]));
            }
        }
        let left = match limit {
            0 => usize::MAX,
            limit => limit.saturating_sub(slabs.in_use() as usize),
        };
        let want = if rseq.is_some() { rounds.min(left) } else { left.min(1) };
        let mut n = 0;
        while n < want {
            match self.alloc_from_slabs(cache) {
                Some(Taken::Raw(object)) if constructed => {
                    if n == 0 {
                        cache.begin_building();
                        self.enter_page(slot, cache, object);
                        return Some(Taken::Raw(object));
                    }
                    // SAFETY: it came just now. Constructs only for a caller.
                    let freed = unsafe { cache.slabs.free(object, false) };
                    debug_assert_eq!(freed, Ok(()), "the object came from there");
                    break;
                }
                Some(taken) => {
                    objects[n] = taken.object();
                    n += 1;
                }
                None => break,
            }
        }
        for object in &objects[..n] {
            self.enter_page(slot, cache, *object);
            self.set_mark(*object, true);
        }
        let last = objects[..n].last()?;
        self.fill_array(cache, handle, rseq, &objects[..n - 1]);
        Some(Taken::Constructed(*last))
    }

    #[inline]
    fn fill_array(&self, cache: &mut Cache, handle: usize, rseq: Option<&Rseq>, objects: &[*mut u8]) {
        let put = rseq.map_or(0, |rseq| self.caches.arrays.push_many(rseq, handle, objects));
        for object in &objects[put..] {
            self.free_locked(cache, *object, cache.constructor.is_some());
        }
    }

    /// Enters the page when its first object goes out (K2).
    pub(super) fn enter_page(&self, slot: &Slot<CacheSlots>, cache: &Cache, object: *mut u8) {
        let Some(entry) = self.caches.entries.of(object as usize) else { return };
        if entry.cache.load(Relaxed) != slot.handle() {
            let first = cache.slabs.place_of(object).map_or(object, |place| place.first);
            entry.begin(slot, cache, first);
        }
        entry.admit(object);
    }

    fn hand_out(&self, slot: &Slot<CacheSlots>, handle: usize, taken: Taken) -> Result<*mut u8, Fault> {
        let object = match taken {
            Taken::Constructed(object) => object,
            Taken::Raw(object) => self.construct(slot, handle, object, true)?,
        };
        if !slot.shared.watched.load(Relaxed) {
            self.set_mark(object, false);
        }
        Ok(object)
    }

    pub(super) fn construct(
        &self,
        slot: &Slot<CacheSlots>,
        handle: usize,
        object: *mut u8,
        asked: bool,
    ) -> Result<*mut u8, Fault> {
        let (constructor, argument) = {
            let cache = slot.locked.lock();
            (cache.constructor, cache.argument)
        };
        let Some(constructor) = constructor else { return Ok(object) };
        let unbuilt = Unbuilt { over: self, slot, object, asked };
        // SAFETY: as large and aligned as the program said, and only ours.
        if Building::<P>::run(handle, || unsafe { constructor(object.cast(), argument) }) != 0 {
            return Err(Fault::Constructor);
        }
        core::mem::forget(unbuilt);
        let mut cache = slot.locked.lock();
        (cache.built, cache.building) = (cache.built + 1, cache.building - 1);
        Ok(object)
    }

    pub(super) fn reclaim(&self, slot: &Slot<CacheSlots>, handle: usize) {
        let (reclaim, argument) = {
            let cache = slot.locked.lock();
            (cache.reclaim, cache.argument)
        };
        if let Some(reclaim) = reclaim {
            // SAFETY: any thread may call it, by the program's promise.
            Building::<P>::run(handle, || unsafe { reclaim(argument) });
        }
    }

    /// Moves all of arrays and depot to the slabs; arrays get no room. `false`: sequences cannot be
    /// interrupted; with `alone` none runs.
    pub(super) fn flush(&self, cache: &mut Cache, alone: bool) -> bool {
        let (id, constructed) = (cache.id, cache.constructor.is_some());
        let (depot, slabs, mut supply) = self.parts(cache);
        let mut free = |object: *mut u8| {
            // SAFETY: the cache's free objects, ours now.
            if unsafe { slabs.free(object, constructed) }.is_err() {
                P::corrupt(object, Misuse::Unallocated);
            }
        };
        let is_closed = self.caches.arrays.empty(id, Which::All, alone, &mut free);
        while let Some(mut magazine) = depot.get_any() {
            while let Some(object) = magazine.pop() {
                free(object);
            }
            // SAFETY: this depot's.
            unsafe { depot.drop_empty(magazine, &mut supply) };
        }
        is_closed
    }

    pub(super) fn set_mark(&self, object: *mut u8, free: bool) {
        if let Some(entry) = self.caches.entries.of(object as usize) {
            entry.set_mark(self.heap.seal(OWNED.into()), object, free);
        }
    }
}
