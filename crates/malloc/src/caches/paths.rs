//! The slow paths of object caches: what the arrays could not serve.
//!
//! **Threads.** Each step is under the cache's lock; the program's constructor runs between two of them.
//!
//! **Failure.** An object whose constructor fails or unwinds is raw again. What is refused is tried once more after the program was asked to
//! give objects back, all arrays were emptied and free memory was made.
//!
//! **Unsafe.** Calls the program's functions, takes objects back, and marks them.

use super::arrays::Which;
use super::building::{self, Building};
use super::slot::{Cache, Slot};
use super::{CLASS, Caches};
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::limits;
use crate::nested;
use crate::route::{Found, Misuse};
use crate::size_class::OWNED;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Floor};
use craton_os::rseq::{COUNTING, Rseq};
use craton_os::{CoarseClock, Guard, process};
use craton_slab::object::{BadObject, Taken};

/// Objects that fill an array at once, at most.
pub(super) const MOST_FILL: usize = COUNTING / 2;
/// For so long somebody sleeps at most before he looks whether memory is to be had: nobody wakes him for that.
const LOOK_EVERY_NS: u64 = 10_000_000;
/// And so long, if somebody does.
const SLEEP_NS: u64 = 1_000_000_000;

/// Why there is no object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The handle is bad.
    Misuse(Misuse),
    /// No memory, or a limit is reached.
    NoMemory,
    /// And nothing came free in time.
    TimedOut,
    /// The calling thread is in a constructor or destructor of this cache.
    Recursive,
    /// The constructor failed.
    Constructor,
}

impl From<Misuse> for Fault {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

/// Gives an object back whose construction came to nothing.
struct Unbuilt<'a, F: Floor, C: Clock, H: Hooks> {
    caches: &'a Caches,
    under: &'a Heap<F, C, H>,
    slot: &'a Slot,
    object: *mut u8,
    /// Somebody asked for it, who gets nothing now: it was counted as handed out.
    asked: bool,
}

impl<F: Floor, C: Clock, H: Hooks> Drop for Unbuilt<'_, F, C, H> {
    fn drop(&mut self) {
        let saved = process::errno();
        nested::within(|| {
            let mut cache = self.slot.cache.lock();
            cache.failed += 1;
            if self.asked {
                cache.slow_allocs -= 1;
                cache.refused += 1;
            }
            self.caches.give(self.under, &mut cache, self.object, false);
            let waits = cache.waiters > 0;
            drop(cache);
            if waits {
                self.slot.freed.announce();
            }
        });
        process::set_errno(saved);
    }
}

impl Caches {
    /// An object of a cache; waits for one for so many nanoseconds, if it is to.
    pub(crate) fn alloc<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
        wait_ns: Option<u64>,
    ) -> Result<*mut u8, Fault> {
        let (_, slot) = self.resolve(handle)?;
        if building::is_for(handle) {
            return Err(Fault::Recursive);
        }
        let rseq = self.rseq_of(under);
        let until = wait_ns.map(|ns| CoarseClock.now_ns().saturating_add(ns));
        let mut asked = false;
        loop {
            let times = slot.freed.times();
            let (taken, sleep_ns) = nested::within(|| {
                let (_, _, mut cache) = self.lock_counted(handle)?;
                let found = self.take_or_gather(under, slot, &mut cache, rseq, until.is_some() && asked);
                cache.slow_allocs += u64::from(found.0.is_some());
                Ok::<_, Misuse>(found)
            })?;
            if let Some(taken) = taken {
                return self.built(under, slot, handle, taken);
            }
            if !core::mem::replace(&mut asked, true) {
                // Once: the program may have objects to give back, and caches of threads memory.
                self.ask_for_objects(slot, handle);
                nested::within(limits::make_room);
                continue;
            }
            let left = until.map_or(0, |until| until.saturating_sub(CoarseClock.now_ns()));
            if left > 0 {
                // Whoever has freed something since we looked has found a waiter, and announced it.
                slot.freed.wait(times, left.min(sleep_ns));
            }
            let mut cache = slot.cache.lock();
            cache.waiters -= u32::from(until.is_some());
            if left == 0 {
                cache.refused += 1;
                return Err(if until.is_some() { Fault::TimedOut } else { Fault::NoMemory });
            }
        }
    }

    /// The sequences, where the process's own heap is meant and the cache may have arrays.
    fn rseq_of<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>) -> Option<&'static Rseq> {
        let is_own = core::ptr::eq(self, &under.caches) && core::ptr::eq(self, &crate::front::HEAP.caches);
        if is_own && !building::any() { self.arrays.rseq() } else { None }
    }

    /// As [`Caches::lock`]; notes that somebody had to wait, since arrays that are too small are why.
    fn lock_counted(&self, handle: usize) -> Result<(u16, &Slot, Guard<'_, Cache>), Misuse> {
        let (id, slot) = self.resolve(handle)?;
        let cache = match slot.cache.try_lock() {
            Some(cache) => cache,
            None => {
                let mut cache = slot.cache.lock();
                cache.depot.note_contended();
                cache
            }
        };
        if slot.live() == handle { Ok((id, slot, cache)) } else { Err(Misuse::CacheDestroyed) }
    }

    /// An object from the depot or the slabs, or, if there is none, from other processors' arrays. If there is none either and the caller `waits`,
    /// he is counted as one who does, and arrays stay closed. Also says for how long he may sleep.
    fn take_or_gather<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        slot: &Slot,
        cache: &mut Cache,
        rseq: Option<&Rseq>,
        waits: bool,
    ) -> (Option<Taken>, u64) {
        let rseq = rseq.filter(|_| !cache.closed && cache.waiters == 0);
        if let Some(taken) = self.take(under, slot, cache, rseq) {
            return (Some(taken), 0);
        }
        let is_closed = self.gather(under, cache, false);
        let taken = self.take(under, slot, cache, None);
        cache.waiters += u32::from(taken.is_none() && waits);
        // Only a limit of the cache's own ends by a free that we see.
        let is_full = cache.limit_objects > 0 && cache.out() >= cache.limit_objects as u64;
        (taken, if is_closed && is_full { SLEEP_NS } else { LOOK_EVERY_NS })
    }

    fn take<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        slot: &Slot,
        cache: &mut Cache,
        rseq: Option<&Rseq>,
    ) -> Option<Taken> {
        if cache.is_debugged() {
            let buffer = cache.take_buffer();
            return (!buffer.is_null()).then_some(Taken::Raw(buffer));
        }
        let mut objects = [null_mut(); MOST_FILL];
        let (id, rounds, constructed) = (cache.id, cache.pace(true), cache.constructor.is_some());
        let (limit, handle) = (cache.limit_objects, slot.live());
        let rseq = rseq.filter(|rseq| self.arrays.open(rseq, id, handle, 2 * cache.rounds()));
        let (depot, slabs, mut supply) = cache.parts(under);
        if rseq.is_some() {
            // SAFETY: the supply is the cache's.
            let n = unsafe { depot.fetch(&mut objects[..rounds], &mut supply) };
            if n > 0 {
                self.fill(under, cache, rseq, &objects[..n - 1]);
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
            // SAFETY: the supply is the cache's.
            match unsafe { slabs.take(&mut supply) } {
                Some(Taken::Raw(object)) if constructed => {
                    if n == 0 {
                        self.note(slot, cache, object);
                        return Some(Taken::Raw(object));
                    }
                    // One is constructed only when it is needed. SAFETY: it came just now.
                    let given = unsafe { slabs.give(object, false) };
                    debug_assert_eq!(given, Ok(()), "the object came from there");
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
            self.note(slot, cache, *object);
            self.set_mark(under, *object, true);
        }
        let last = objects[..n].last()?;
        self.fill(under, cache, rseq, &objects[..n - 1]);
        Some(Taken::Constructed(*last))
    }

    /// Puts free objects into this processor's array, and what it has no room for back.
    fn fill<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        cache: &mut Cache,
        rseq: Option<&Rseq>,
        objects: &[*mut u8],
    ) {
        let handle = self.slot(cache.id).live();
        let put = rseq.map_or(0, |rseq| self.arrays.put_many(rseq, handle, objects));
        for object in &objects[put..] {
            self.give(under, cache, *object, cache.constructor.is_some());
        }
    }

    /// Enters an object's page, when the first one on it goes out.
    pub(super) fn note(&self, slot: &Slot, cache: &Cache, object: *mut u8) {
        let Some(entry) = self.entries.of(object as usize) else { return };
        if entry.cache.load(Relaxed) != slot.live() {
            let first = cache.slabs.place_of(object).map_or(object, |place| place.first);
            entry.begin(slot, cache, first);
        }
    }

    /// Makes an object that was taken one that is out.
    fn built<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        slot: &Slot,
        handle: usize,
        taken: Taken,
    ) -> Result<*mut u8, Fault> {
        let object = match taken {
            Taken::Constructed(object) => object,
            Taken::Raw(object) => self.construct(under, slot, handle, object, true)?,
        };
        if !slot.debugged.load(Relaxed) {
            self.set_mark(under, object, false);
        }
        Ok(object)
    }

    /// Constructs a raw object that was taken, for somebody who has `asked` for one or to lie ready.
    pub(super) fn construct<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        slot: &Slot,
        handle: usize,
        object: *mut u8,
        asked: bool,
    ) -> Result<*mut u8, Fault> {
        let (constructor, argument) = {
            let cache = slot.cache.lock();
            (cache.constructor, cache.argument)
        };
        let Some(constructor) = constructor else { return Ok(object) };
        let unbuilt = Unbuilt { caches: self, under, slot, object, asked };
        // SAFETY: the object is as large and aligned as the program said, and nobody else's.
        if Building::of(handle).run(|| unsafe { constructor(object.cast(), argument) }) != 0 {
            return Err(Fault::Constructor);
        }
        core::mem::forget(unbuilt);
        slot.cache.lock().built += 1;
        Ok(object)
    }

    /// Asks the program to give objects of a cache back.
    pub(super) fn ask_for_objects(&self, slot: &Slot, handle: usize) {
        let (reclaim, argument) = {
            let cache = slot.cache.lock();
            (cache.reclaim, cache.argument)
        };
        if let Some(reclaim) = reclaim {
            // SAFETY: the program's function, of which it says that any thread may call it.
            Building::of(handle).run(|| unsafe { reclaim(argument) });
        }
    }

    /// Takes what arrays and the depot hold back to the slabs; arrays have no room until they are opened again. `false`: the system does not let
    /// us empty arrays.
    pub(super) fn gather<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        cache: &mut Cache,
        alone: bool,
    ) -> bool {
        let constructed = cache.constructor.is_some();
        let (depot, slabs, mut supply) = cache.parts(under);
        let mut give = |object: *mut u8| {
            // SAFETY: free objects are the cache's, and ours now.
            let given = unsafe { slabs.give(object, constructed) };
            expect_given(object, given);
        };
        let is_closed = self.arrays.empty(supply.id(), Which::All, alone, &mut give);
        while let Some(mut magazine) = depot.get_any() {
            while let Some(object) = magazine.pop() {
                give(object);
            }
            // SAFETY: it is of this depot.
            unsafe { depot.drop_empty(magazine, &mut supply) };
        }
        is_closed
    }

    /// Gives an object back to its slab.
    pub(super) fn give<F: Floor, C: Clock, H: Hooks>(
        &self,
        _: &Heap<F, C, H>,
        cache: &mut Cache,
        object: *mut u8,
        constructed: bool,
    ) {
        if cache.is_debugged() {
            return cache.give_buffer(object);
        }
        // SAFETY: it is the cache's, and ours.
        let given = unsafe { cache.slabs.give(object, constructed) };
        expect_given(object, given);
    }

    /// Takes an object back.
    ///
    /// # Safety
    /// Any pointer may be given; if it is an object of the cache that is out, the caller gives it up.
    pub(crate) unsafe fn free<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
        object: *mut u8,
    ) -> Result<(), Misuse> {
        let rseq = self.rseq_of(under);
        let (_, slot, mut cache) = self.lock_counted(handle)?;
        self.look_at(under, &cache, object)?;
        self.set_mark(under, object, true);
        if let Some(rseq) = rseq.filter(|_| !cache.closed && cache.waiters == 0)
            && self.free_into_array(under, &mut cache, rseq, object)
        {
            return Ok(());
        }
        let constructed = cache.constructor.is_some();
        self.give(under, &mut cache, object, constructed);
        let waits = cache.waiters > 0;
        drop(cache);
        if waits {
            slot.freed.announce();
        }
        Ok(())
    }

    /// Adds a free object to this processor's array; when that is full, up to half of it goes to the depot.
    fn free_into_array<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        cache: &mut Cache,
        rseq: &Rseq,
        object: *mut u8,
    ) -> bool {
        let (id, rounds) = (cache.id, cache.pace(false));
        let handle = self.slot(id).live();
        if !self.arrays.open(rseq, id, handle, 2 * cache.rounds()) {
            return false;
        }
        if self.arrays.put(rseq, handle, object) {
            return true;
        }
        let mut objects = [null_mut(); MOST_FILL];
        let n = self.arrays.take_many(rseq, handle, &mut objects[..rounds]);
        cache.moved += n as u64;
        self.keep(under, cache, &objects[..n]);
        self.arrays.put(rseq, handle, object)
    }

    /// Whether a pointer is an object of the cache that is out.
    fn look_at<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        cache: &Cache,
        object: *mut u8,
    ) -> Result<(), Misuse> {
        let size = cache.size;
        let Some(its) = under.cache_of(object) else {
            return Err(match under.find(object) {
                Found::Bad(misuse) => misuse,
                _ => Misuse::NotCached { given: cache.id },
            });
        };
        if its != cache.id {
            return Err(Misuse::OtherCache { its, given: cache.id });
        }
        match cache.slabs.place_of(object) {
            None => Err(Misuse::Unallocated),
            Some(place) if place.offset > 0 => Err(Misuse::Inside { offset: place.offset, size }),
            Some(place) if !place.out || self.is_marked(under, object) => Err(Misuse::Freed { size }),
            Some(_) => Ok(()),
        }
    }

    /// Marks an object as free, or as out.
    pub(super) fn set_mark<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>, object: *mut u8, free: bool) {
        if let Some(entry) = self.entries.of(object as usize) {
            entry.set_mark(under.layout().key, object, free);
        }
    }

    fn is_marked<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>, object: *mut u8) -> bool {
        self.entries.of(object as usize).is_some_and(|entry| entry.is_marked(under.layout().key, object))
    }
}

/// What arrays and magazines hold are objects of the cache that are out of its slabs: anything else is a bug of ours, or memory that the program has
/// overwritten.
fn expect_given(object: *mut u8, given: Result<(), BadObject>) {
    if given.is_err() {
        crate::report::misuse("craton_cache_free", object, Misuse::Unallocated);
    }
}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// The number of the cache whose page a pointer lies on.
    pub(crate) fn cache_of(&self, pointer: *mut u8) -> Option<u16> {
        let page = self.page_of(pointer as usize)?;
        let (cache, class) = self.record(page).heap();
        (self.mark(page) == OWNED && class == CLASS).then_some(cache)
    }
}
