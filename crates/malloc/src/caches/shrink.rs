//! What goes back: working sets, memory pressure, `reap`, and a cache's end.
//!
//! **From.** Bonwick94 §3.4, Bonwick & Adams 2001 §3.6: what lay unused through a whole interval is not of the working set. Idle magazines
//! go to the slabs, idle slabs to the page heap.
//!
//! **Threads.** Destructors run without a lock, and never in the heap's own thread, whose stack is small: there a cache with a destructor keeps
//! its idle slabs until the next slow call of the program on the cache, or [`super::api::reap`].
//!
//! **Unsafe.** Calls the program's destructors.

use super::arrays::Which;
use super::building::{self, Building};
use super::slot::{Cache, Slot};
use super::{Caches, Fault};
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::route::Misuse;
use crate::{background, nested};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Floor};
use craton_os::{CoarseClock, Guard, process};
use craton_slab::object::{Detached, Taken};

/// Objects that `prefill` makes between two looks at the depot.
const AT_ONCE: usize = 30;
/// Free memory of a cache that must not be left to a program that sleeps: the library's thread then gives it back.
const MUCH: usize = 16 << 20;
/// What a cache's next slow call is to do.
pub(super) const IDLE: u32 = 1;
pub(super) const ALL: u32 = 2;

/// A slab that goes back also when the program's destructor unwinds.
struct Going<'a, F: Floor, C: Clock, H: Hooks> {
    under: &'a Heap<F, C, H>,
    slot: &'a Slot,
    slab: Option<Detached>,
    destroyed: u64,
    bytes: usize,
}

impl<F: Floor, C: Clock, H: Hooks> Going<'_, F, C, H> {
    fn go(&mut self) {
        if let Some(slab) = self.slab.take() {
            let mut cache = self.slot.cache.lock();
            cache.destroyed += self.destroyed;
            let (_, slabs, mut supply) = cache.parts(self.under);
            // SAFETY: the slab is of this cache.
            self.bytes = unsafe { slabs.release(slab, &mut supply) };
        }
    }
}

impl<F: Floor, C: Clock, H: Hooks> Drop for Going<'_, F, C, H> {
    fn drop(&mut self) {
        self.go();
    }
}

impl Cache {
    /// Bytes of slabs in which no object is that the program or a processor's array has.
    fn free_bytes(&self) -> usize {
        let out = self.slabs.in_use() - self.depot.objects();
        self.slabs.bytes().saturating_sub(out as usize * self.layout.stride())
    }

    /// Whether a complete slab may go without breaking what `prefill` has promised.
    fn may_shrink(&self) -> bool {
        let capacity = self.layout.capacity() as u64;
        let there = if self.constructor.is_some() { self.built - self.destroyed } else { self.slabs.stats().total };
        self.reserved == 0 || there >= capacity + self.reserved as u64
    }
}

impl Caches {
    /// Gives complete slabs back while `more` wants it, and their objects to the destructor; returns how many bytes went.
    fn give_slabs<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        slot: &Slot,
        handle: usize,
        more: impl Fn(&Cache) -> bool,
    ) -> usize {
        let mut all = 0;
        loop {
            let mut cache = slot.cache.lock();
            if !more(&cache) || !cache.may_shrink() {
                return all;
            }
            let Some(slab) = cache.slabs.detach() else { return all };
            let (destructor, argument) = (cache.destructor, cache.argument);
            let constructed = cache.constructor.is_some();
            drop(cache);
            let mut going = Going { under, slot, slab: None, destroyed: 0, bytes: 0 };
            if constructed {
                let mut objects = 0;
                let call = |object: *mut u8| {
                    objects += 1;
                    if let Some(destructor) = destructor {
                        // SAFETY: the object is constructed, and nobody else's.
                        Building::of(handle).run(|| unsafe { destructor(object.cast(), argument) });
                    }
                };
                // SAFETY: once for each slab.
                unsafe { slab.for_each_constructed(call) };
                going.destroyed = objects;
            }
            going.slab = Some(slab);
            going.go();
            all += going.bytes;
        }
    }

    /// Gives back what a cache does not need now; returns how many bytes went.
    pub(crate) fn reap<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
    ) -> Result<usize, Fault> {
        let (_, slot) = self.resolve(handle)?;
        if building::is_for(handle) {
            return Err(Fault::Recursive);
        }
        slot.wants_look.store(0, Relaxed);
        let magazines = nested::within(|| {
            let (_, _, mut cache) = self.lock(handle)?;
            self.gather(under, &mut cache, false);
            let (depot, _, mut supply) = cache.parts(under);
            // SAFETY: the supply is the cache's.
            Ok::<_, Misuse>(unsafe { depot.reap_empty(true, &mut supply) })
        })?;
        let slabs = self.give_slabs(under, slot, handle, |_| true);
        Ok(magazines + slabs)
    }

    /// What a slow call of the program on a cache does besides, if it was left to it.
    pub(super) fn heed<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>, handle: usize) {
        let Ok((_, slot)) = self.resolve(handle) else { return };
        if slot.wants_look.load(Relaxed) == 0 || building::any() {
            return;
        }
        if slot.wants_look.swap(0, Relaxed) & ALL != 0 {
            self.ask_for_objects(slot, handle);
            let _ = self.reap(under, handle);
        } else {
            self.give_slabs(under, slot, handle, |cache| cache.slabs.idle() > 0);
        }
    }

    /// Looks after all caches, from time to time; `may_call` says that the program's functions may be called here. Says whether anything went.
    pub(crate) fn look<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>, may_call: bool) -> bool {
        let now = CoarseClock.now_ns();
        let mut went = false;
        for (_, slot) in self.each_slot() {
            let handle = slot.live();
            let Ok((_, _, mut cache)) = self.lock(handle) else { continue };
            if self.turn(under, &mut cache, now) && !may_call && cache.destructor.is_some() {
                slot.wants_look.fetch_or(IDLE, Relaxed);
                continue;
            }
            let calls = cache.destructor.is_some();
            drop(cache);
            if may_call || !calls {
                went |= self.give_slabs(under, slot, handle, |cache| cache.slabs.idle() > 0) > 0;
            }
        }
        went
    }

    /// Tells a cache the time; says whether it has idle slabs.
    fn turn<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>, cache: &mut Cache, now: u64) -> bool {
        if cache.depot.tick(now) {
            cache.slow_down();
            let constructed = cache.constructor.is_some();
            let (depot, slabs, mut supply) = cache.parts(under);
            let mut give = |object: *mut u8| {
                // SAFETY: free objects are the cache's, and ours now.
                let given = unsafe { slabs.give(object, constructed) };
                debug_assert_eq!(given, Ok(()), "a free object is the cache's");
            };
            self.arrays.empty(supply.id(), Which::Idle, false, &mut give);
            while let Some(mut magazine) = depot.get_idle() {
                while let Some(object) = magazine.pop() {
                    give(object);
                }
                // SAFETY: it is of this depot.
                unsafe { depot.drop_empty(magazine, &mut supply) };
            }
            // SAFETY: the supply is the cache's.
            unsafe { depot.reap_empty(false, &mut supply) };
            slabs.turn();
        }
        cache.slabs.idle() > 0
    }

    /// Memory is short: gives back what caches without destructors do not need, and leaves the others to their next slow call.
    pub(crate) fn relieve<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>) {
        for (_, slot) in self.each_slot() {
            let handle = slot.live();
            let calls = {
                let Some(cache) = slot.cache.try_lock() else { continue };
                cache.destructor.is_some() || cache.reclaim.is_some()
            };
            if calls {
                slot.wants_look.fetch_or(ALL, Relaxed);
            } else {
                let _ = self.reap(under, handle);
            }
        }
    }

    /// Gives back what caches do not need, in a call of the program; returns how many bytes went.
    pub(crate) fn reap_all<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>) -> usize {
        self.each_slot().filter_map(|(_, slot)| self.reap(under, slot.live()).ok()).sum()
    }

    /// Sees to it that so many objects may be out at a time without memory being asked for.
    pub(super) fn prefill<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
        objects: usize,
    ) -> Result<(), Fault> {
        let (_, slot) = self.resolve(handle)?;
        if building::is_for(handle) {
            return Err(Fault::Recursive);
        }
        {
            let cache = self.lock(handle)?.2;
            let (most, memory) = (cache.limit_objects, process::physical_memory());
            // More than the machine has would take all of it first, and then be refused or worse.
            let is_beyond = memory > 0 && objects.saturating_mul(cache.layout.stride()) > memory;
            if is_beyond || most > 0 && objects > most {
                return Err(Fault::NoMemory);
            }
        }
        if slot.debugged.load(Relaxed) {
            // Each of its objects is made when it is asked for.
            return Ok(());
        }
        loop {
            let (mut made, mut n) = ([null_mut(); AT_ONCE], 0);
            let failed = loop {
                let mut cache = self.lock(handle)?.2;
                let there = cache.slabs.in_use() >= objects as u64;
                if there || n == AT_ONCE {
                    cache.reserved = if there { objects } else { cache.reserved };
                    break None;
                }
                let taken = nested::within(|| {
                    let (_, slabs, mut supply) = cache.parts(under);
                    // SAFETY: the supply is the cache's.
                    unsafe { slabs.take(&mut supply) }
                });
                let Some(taken) = taken else { break Some(Fault::NoMemory) };
                self.note(slot, &cache, taken.object());
                drop(cache);
                let built = match taken {
                    Taken::Constructed(object) => Ok(object),
                    Taken::Raw(object) => self.construct(under, slot, handle, object, false),
                };
                match built {
                    Ok(object) => {
                        self.set_mark(under, object, true);
                        made[n] = object;
                        n += 1;
                    }
                    Err(fault) => break Some(fault),
                }
            };
            // What was made is kept in any case.
            let is_done = n < AT_ONCE;
            let is_kept = nested::within(|| self.keep(under, &mut slot.cache.lock(), &made[..n]));
            match failed {
                Some(fault) => return Err(fault),
                // What went to the slabs for want of a magazine is not counted, and would be taken and given back without end.
                None if !is_kept => return Err(Fault::NoMemory),
                None if is_done => return Ok(()),
                None => {}
            }
        }
    }

    /// Puts free objects into the depot, or on their slabs where there is no memory for magazines; says whether all are in the depot.
    pub(super) fn keep<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        cache: &mut Cache,
        objects: &[*mut u8],
    ) -> bool {
        let (depot, _, mut supply) = cache.parts(under);
        // SAFETY: the supply is the cache's.
        let stored = unsafe { depot.store(objects, &mut supply) };
        for object in &objects[stored..] {
            self.give(under, cache, *object, cache.constructor.is_some());
        }
        if cache.free_bytes() >= MUCH {
            background::want_thread();
        }
        stored == objects.len()
    }

    /// Ends a cache; refused while objects are out.
    pub(crate) fn destroy<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
    ) -> Result<Result<(), u64>, Fault> {
        let (id, slot) = self.resolve(handle)?;
        if building::is_for(handle) {
            return Err(Fault::Recursive);
        }
        {
            let mut cache: Guard<'_, Cache> = self.lock(handle)?.2;
            self.gather(under, &mut cache, true);
            if cache.out() > 0 {
                let out = cache.out();
                drop(cache);
                self.tell_who_has(slot, id);
                return Ok(Err(out));
            }
            cache.reserved = 0;
            // From here on nobody finds it.
            slot.end();
        }
        self.give_slabs(under, slot, handle, |_| true);
        let mut free = self.free.lock();
        let mut cache = slot.cache.lock();
        let (depot, slabs, mut supply) = cache.parts(under);
        // SAFETY: the supply is the cache's; nothing is out, and all slabs are gone.
        unsafe {
            depot.reap_empty(true, &mut supply);
            let gone = slabs.destroy(&mut supply, |_| ());
            debug_assert!(gone.is_ok(), "nothing is out");
        }
        cache.clear();
        slot.next_free.store(*free, Relaxed);
        *free = u32::from(id) + 1;
        Ok(Ok(()))
    }
}
