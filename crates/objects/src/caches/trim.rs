//! Returns free memory of caches (Bonwick94 §3.4, Bonwick & Adams 2001 §3.6).
//!
//! **Threads.** Destructors run without a lock, never on the background thread's small stack: a
//! cache with a destructor keeps idle slabs until the program's next slow call or [`Over::reap`].
//!
//! **Unsafe.** Calls the program's destructors.

use super::Fault;
use super::Over;
use super::arrays::Which;
use super::building::Building;
use super::cache::{Cache, CacheSlots};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Platform};
use craton_heap::Misuse;
use craton_heap::hooks::Hooks;
use craton_slab::object::Detached;

/// The next slow call frees idle slabs.
const IDLE: u32 = 1;
/// The next slow call frees all that is not needed.
const ALL: u32 = 2;

/// Reaches the page heap also when the program's destructor unwinds.
struct Going<'a, 'o, F: Platform, C: Clock, H: Hooks, P: Process + Watch> {
    over: &'a Over<'o, F, C, H, P>,
    slot: &'a Slot<CacheSlots>,
    slab: Option<Detached>,
    destroyed: u64,
    bytes: usize,
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Going<'_, '_, F, C, H, P> {
    fn go(&mut self) {
        if let Some(slab) = self.slab.take() {
            let mut cache = self.slot.locked.lock();
            cache.destroyed += self.destroyed;
            let (_, slabs, mut supply) = self.over.parts(&mut cache);
            // SAFETY: this cache's slab.
            self.bytes = unsafe { slabs.release(slab, &mut supply) };
        }
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Drop for Going<'_, '_, F, C, H, P> {
    fn drop(&mut self) {
        self.go();
    }
}

impl Cache {
    pub(super) fn free_bytes(&self) -> usize {
        let out = self.slabs.in_use() - self.depot.objects();
        self.slabs.bytes().saturating_sub(out as usize * self.layout.stride())
    }

    /// A complete slab is beyond the promise of `prefill`.
    fn may_shrink(&self) -> bool {
        let capacity = self.layout.capacity() as u64;
        let there = if self.constructor.is_some() { self.built - self.destroyed } else { self.slabs.total() };
        self.reserved == 0 || there >= capacity + self.reserved as u64
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    /// Returns bytes.
    pub(super) fn free_slabs(&self, slot: &Slot<CacheSlots>, handle: usize, more: impl Fn(&Cache) -> bool) -> usize {
        let mut all = 0;
        loop {
            let mut cache = slot.locked.lock();
            if !more(&cache) || !cache.may_shrink() {
                return all;
            }
            let Some(slab) = cache.slabs.detach() else { return all };
            let (destructor, argument) = (cache.destructor, cache.argument);
            let constructed = cache.constructor.is_some();
            drop(cache);
            let mut going = Going { over: self, slot, slab: Some(slab), destroyed: 0, bytes: 0 };
            if let (true, Going { slab: Some(slab), destroyed, .. }) = (constructed, &mut going) {
                let call = |object: *mut u8| {
                    *destroyed += 1;
                    if let Some(destructor) = destructor {
                        // SAFETY: constructed, and only ours.
                        Building::<P>::run(handle, || unsafe { destructor(object.cast(), argument) });
                    }
                };
                // SAFETY: once for each slab.
                unsafe { slab.for_each_constructed(call) };
            }
            going.go();
            all += going.bytes;
        }
    }

    /// Returns the bytes of freed memory.
    pub fn reap(&self, handle: usize) -> Result<usize, Fault> {
        let (_, slot) = self.caches.slots.find(handle)?;
        if Building::<P>::is_for(handle) {
            return Err(Fault::Recursive);
        }
        slot.shared.deferred.store(0, Relaxed);
        let magazines = P::within(|| {
            let (_, _, mut cache) = self.caches.slots.lock(handle)?;
            self.flush(&mut cache, false);
            let (depot, _, mut supply) = self.parts(&mut cache);
            // SAFETY: `parts` returns the cache's one supply.
            Ok::<_, Misuse>(unsafe { depot.reap_empty(true, &mut supply) })
        })?;
        Ok(magazines + self.free_slabs(slot, handle, |_| true))
    }

    /// Runs deferred work, which calls the program's functions.
    pub fn run_deferred(&self, handle: usize) {
        let Ok((_, slot)) = self.caches.slots.find(handle) else { return };
        if slot.shared.deferred.load(Relaxed) == 0 || Building::<P>::any() {
            return;
        }
        if slot.shared.deferred.swap(0, Relaxed) & ALL != 0 {
            self.reclaim(slot, handle);
            let _ = self.reap(handle);
        } else {
            self.free_slabs(slot, handle, |cache| cache.slabs.idle() > 0);
        }
    }

    /// About each second. `may_call`: the program's functions. Returns whether memory was freed.
    pub fn tick(&self, may_call: bool) -> bool {
        let now = self.caches.clock.now_ns();
        let mut freed = false;
        for (_, slot) in self.caches.slots.living() {
            let handle = slot.handle();
            let Ok((_, _, mut cache)) = self.caches.slots.lock(handle) else { continue };
            let calls = cache.destructor.is_some();
            if self.age(&mut cache, now) && !may_call && calls {
                slot.shared.deferred.fetch_or(IDLE, Relaxed);
                continue;
            }
            drop(cache);
            if may_call || !calls {
                freed |= self.free_slabs(slot, handle, |cache| cache.slabs.idle() > 0) > 0;
            }
        }
        freed
    }

    /// Returns whether the cache has idle slabs.
    fn age(&self, cache: &mut Cache, now: u64) -> bool {
        if cache.depot.tick(now) {
            cache.shrink_arrays();
            let (id, constructed) = (cache.id, cache.constructor.is_some());
            let (depot, slabs, mut supply) = self.parts(cache);
            let mut free = |object: *mut u8| {
                // SAFETY: the cache's free objects, ours now.
                let freed = unsafe { slabs.free(object, constructed) };
                debug_assert_eq!(freed, Ok(()), "a free object is the cache's");
            };
            self.caches.arrays.empty(id, Which::Idle, false, &mut free);
            while let Some(mut magazine) = depot.get_idle() {
                while let Some(object) = magazine.pop() {
                    free(object);
                }
                // SAFETY: this depot's.
                unsafe { depot.drop_empty(magazine, &mut supply) };
            }
            // SAFETY: `parts` returns the cache's one supply.
            unsafe { depot.reap_empty(false, &mut supply) };
            slabs.turn();
        }
        cache.slabs.idle() > 0
    }

    pub fn relieve(&self) {
        for (_, slot) in self.caches.slots.living() {
            let calls = {
                let Some(cache) = slot.locked.try_lock() else { continue };
                cache.destructor.is_some() || cache.reclaim.is_some()
            };
            if calls {
                slot.shared.deferred.fetch_or(ALL, Relaxed);
            } else {
                let _ = self.reap(slot.handle());
            }
        }
    }

    /// In a call of the program; returns bytes.
    pub fn reap_all(&self) -> usize {
        self.caches.slots.living().filter_map(|(_, slot)| self.reap(slot.handle()).ok()).sum()
    }
}
