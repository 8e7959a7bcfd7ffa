//! Caches of processors: for threads that have none of their own.
//!
//! **What.** A thread that allocates little, or that is one of many, takes from the cache of the processor that it happens to be on, by
//! restartable sequences: it needs no memory, nothing is made when it begins and nothing given up when it ends. A thread that allocates
//! much gets a cache of its own ([`super::thread`]), which is quicker, as long as such threads are few.
//!
//! **From.** TEMERAIRE §3 (TCMalloc's per-CPU caches). Arrays of pointers, since only one store counts in a restartable sequence.
//!
//! **State.** For each processor one area, made at its first use:
//! ```text
//! | (count, capacity) for each class | misses and overflows for each class | bytes left to grow by | arrays of pointers, one for each class |
//! ```
//! Objects in an array bear the mark of free objects. A class's capacity doubles when it was empty, or full of what others lack, as far as
//! the area's bytes go. It halves with each overflow in a long freeing, whose objects others do not need: each keeps its slab from coming
//! free. And it halves when it was neither from one look ([`ProcessorCaches::look`]) to the next. An area that nothing has changed
//! in meanwhile is emptied.
//!
//! **Invariants.** T3 an array's count is at most its place in the area; T4 the capacities of an area come to no more than
//! [`AREA_BYTES`] and what each class has at first.
//!
//! **Threads.** Counts and slots change in restartable sequences alone, or by whoever has put [`AWAY`] in the table's place for the area
//! and interrupted all sequences. Capacities and misses are advice: a lost update costs nothing but speed.
//!
//! **Failure.** Without restartable sequences there are no such caches, and each thread has its own.
//!
//! **Cost.** 20 instructions to take, 22 to put, in three lines of the area.
//!
//! **Not here.** The arrays of object caches (`craton-objects`, `caches/arrays.rs`) are another form:
//! 14 instructions to take and 12 to add against 18 and 19 here (of the sequence alone), but over a
//! reservation of 64 GiB, which a program without object caches need not have.
//!
//! **Unsafe.** Keeps objects in arrays in mappings of its own.

use crate::heap::Heap;
use crate::hooks::{Event, Hooks};
use crate::size_class::{self, CLASSES};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use craton_base::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering, Ordering::Relaxed};
use craton_base::{Clock, Machine, Mappings, Platform};
use craton_os::rseq::{PROCESSORS, Place, Rseq, Table};
use craton_slab::Chain;

/// Bytes by which the arrays of one area may grow in all.
const AREA_BYTES: i32 = 1 << 20;
/// What an array holds at first, in objects and in bytes.
const FIRST_OBJECTS: u32 = 8;
const FIRST_BYTES: usize = 4 << 10;
/// So many overflows without a refill are a long freeing.
const LONG: u8 = 8;

/// Pointers that a class's array has room for: two batches.
const fn room(class: usize) -> u32 {
    2 * size_class::batch(class)
}

/// What a class's array may hold at first: two objects at least, so that one can come and go.
const fn first_capacity(class: usize) -> u32 {
    match (FIRST_BYTES / size_class::size_of_class(class)) as u32 {
        0 | 1 => 2,
        n if n > FIRST_OBJECTS => FIRST_OBJECTS,
        n => n,
    }
}

/// Pointers in an area.
const SLOTS: usize = {
    let (mut slots, mut class) = (0, 1);
    while class <= CLASSES {
        slots += room(class) as usize;
        class += 1;
    }
    slots
};

#[repr(C)]
struct Counts {
    count: AtomicU32,
    capacity: AtomicU32,
}

/// One processor's cache. All zeros hold nothing, and take nothing.
#[repr(C, align(64))]
struct Area {
    counts: [Counts; CLASSES + 1],
    misses: [AtomicU32; CLASSES + 1],
    /// Overflows since the array was empty last.
    overflows: [AtomicU8; CLASSES + 1],
    left: AtomicI32,
    /// What the counts came to at the last look.
    seen: AtomicU32,
    slots: [AtomicPtr<u8>; SLOTS],
}

static PLACES: [Place; CLASSES + 1] = {
    let mut places = [Place { counts: 0, slots: 0 }; CLASSES + 1];
    let (mut slots, mut class) = (core::mem::offset_of!(Area, slots), 1);
    while class <= CLASSES {
        places[class] = Place { counts: (class * size_of::<Counts>()) as u32, slots: slots as u32 };
        slots += room(class) as usize * size_of::<AtomicPtr<u8>>();
        class += 1;
    }
    places
};

/// Stands in the table for an area that somebody has taken away for a moment.
#[repr(transparent)]
struct Away(UnsafeCell<Area>);

// SAFETY: it is never written: its arrays are empty and have no room.
unsafe impl Sync for Away {}

static AWAY: Away = Away(UnsafeCell::new(Area {
    counts: [const { Counts { count: AtomicU32::new(0), capacity: AtomicU32::new(0) } }; CLASSES + 1],
    misses: [const { AtomicU32::new(0) }; CLASSES + 1],
    overflows: [const { AtomicU8::new(0) }; CLASSES + 1],
    left: AtomicI32::new(0),
    seen: AtomicU32::new(0),
    slots: [const { AtomicPtr::new(null_mut()) }; SLOTS],
}));

fn away() -> *mut u8 {
    AWAY.0.get().cast()
}

/// The caches of all processors.
pub struct ProcessorCaches {
    table: Table,
    /// Written before `on` is set.
    rseq: UnsafeCell<Option<Rseq>>,
    on: AtomicBool,
    /// Whether an area has been used since somebody last found all of them idle.
    in_use: AtomicBool,
}

// SAFETY: `rseq` is written by `set_up` alone, before `on` says that it may be read; the rest is atomic.
unsafe impl Sync for ProcessorCaches {}

impl ProcessorCaches {
    /// Offsets and sizes in bytes, for those who read the memory of another process.
    pub const SHAPE: [(&'static str, usize); 4] = [
        ("processors.table", core::mem::offset_of!(Self, table)),
        ("processors.most", PROCESSORS),
        ("area.bytes", size_of::<Area>()),
        ("area.count", core::mem::offset_of!(Counts, count)),
    ];

    /// Where a class's count and its array begin in an area, in bytes.
    pub const fn place(class: usize) -> Place {
        PLACES[class]
    }

    /// Without areas, and off.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub const EMPTY: Self = Self {
        table: [const { AtomicPtr::new(null_mut()) }; PROCESSORS],
        rseq: UnsafeCell::new(None),
        on: AtomicBool::new(false),
        in_use: AtomicBool::new(false),
    };

    /// Finds out whether threads here have restartable sequences.
    ///
    /// # Safety
    /// Called once, before any other thread uses the caches.
    pub unsafe fn set_up<H: Hooks>(&self) {
        let found = Rseq::find();
        // SAFETY: by the contract nobody reads it yet.
        unsafe { *self.rseq.get() = found };
        // ORDERING: Release pairs with the Acquire in `rseq`.
        self.on.store(found.is_some(), Ordering::Release);
        H::event(Event::CpuCacheMode(found.map_or(0, |rseq| 1 + u64::from(rseq.is_compact()))));
    }

    /// The sequences, where there are any.
    #[inline]
    pub fn rseq(&self) -> Option<&Rseq> {
        // ORDERING: Acquire pairs with the Release in `set_up`. SAFETY: not written any more.
        if self.on.load(Ordering::Acquire) { unsafe { (*self.rseq.get()).as_ref() } } else { None }
    }

    /// The sequences, for a thread that has found out that there are some.
    ///
    /// # Safety
    /// [`ProcessorCaches::rseq`] has given them to the calling thread.
    #[inline(always)]
    pub unsafe fn rseq_known(&self) -> &Rseq {
        // SAFETY: by the contract they are there, and not written any more.
        unsafe { (*self.rseq.get()).as_ref().unwrap_unchecked() }
    }

    /// Whether areas have been in use lately.
    pub fn in_use(&self) -> bool {
        self.in_use.load(Relaxed)
    }

    /// Takes an object of a class from this processor's cache; null when it has none.
    #[inline]
    pub fn pop(&self, rseq: &Rseq, class: usize) -> *mut u8 {
        // SAFETY: the table holds areas, in which the places have arrays.
        unsafe { rseq.pop(&self.table, PLACES[class]) }
    }

    /// Puts an object, marked as free, into this processor's cache; `false` when there is no room.
    #[inline]
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // The pointer is stored, not followed.
    pub fn push(&self, rseq: &Rseq, class: usize, object: *mut u8) -> bool {
        // SAFETY: as in `pop`.
        unsafe { rseq.push(&self.table, PLACES[class], object) }
    }

    /// An object of a class of which this processor has none: fills its array. Null when there is no memory; the object still bears
    /// its mark.
    pub fn refill<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, rseq: &Rseq, class: usize) -> *mut u8 {
        let Some((home, area)) = self.area(heap, rseq) else {
            return heap.take(0, class, 1).pop().unwrap_or(null_mut());
        };
        area.overflows[class].store(0, Relaxed);
        let capacity = area.missed(class);
        let want = H::bound(class, (capacity / 2).clamp(1, size_class::batch(class)));
        let mut chain = heap.take(home, class, want);
        let first = chain.pop().unwrap_or(null_mut());
        while let Some(object) = chain.pop() {
            if !self.push(rseq, class, object) {
                // We were moved, or somebody put back what he had.
                // SAFETY: the objects are the heap's, of this class, and ours.
                unsafe {
                    heap.give_marked(class, object);
                    heap.give(class, chain);
                }
                break;
            }
        }
        first
    }

    /// Takes an object, marked as free, for which this processor's array had no room.
    ///
    /// # Safety
    /// The object is of the heap and the class, and the caller gives it up.
    pub unsafe fn overflow<F: Platform, C: Clock, H: Hooks>(
        &self,
        heap: &Heap<F, C, H>,
        rseq: &Rseq,
        class: usize,
        object: *mut u8,
    ) {
        if let Some((home, area)) = self.area(heap, rseq) {
            let capacity = if heap.passes_on(home, class) { area.missed(class) } else { area.overflowed(class) };
            if self.push(rseq, class, object) {
                return;
            }
            let mut chain = Chain::EMPTY;
            // Of an array that holds less from now on, what is too much goes, too.
            let count = area.counts[class].count.load(Relaxed);
            while chain.len()
                < (capacity / 2).max(count.saturating_sub(capacity / 2)).clamp(1, size_class::batch(class))
            {
                let out = self.pop(rseq, class);
                if out.is_null() {
                    break;
                }
                // SAFETY: the object was the cache's, and is ours now.
                unsafe { chain.push(out) };
            }
            // SAFETY: objects of a class's array are of this class and heap.
            unsafe { heap.pass_on_or_give(home, class, chain) };
            if self.push(rseq, class, object) {
                return;
            }
        }
        // SAFETY: by the contract.
        unsafe { heap.give_marked(class, object) };
    }

    /// This processor's area, and its home; `None` while it is away, and without memory.
    fn area<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, rseq: &Rseq) -> Option<(usize, &Area)> {
        if !self.in_use.load(Relaxed) {
            self.in_use.store(true, Relaxed);
        }
        let processor = rseq.processor()?;
        // ORDERING: Acquire pairs with the Release in `make`: the area's capacities are seen.
        let area = match self.table[processor].load(Ordering::Acquire) {
            area if area == away() => return None,
            area if area.is_null() => self.make(heap, processor)?,
            area => area,
        };
        // SAFETY: areas live for ever.
        Some((heap.home(processor), unsafe { &*area.cast::<Area>() }))
    }

    #[cold]
    fn make<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, processor: usize) -> Option<*mut u8> {
        let bytes = size_of::<Area>().next_multiple_of(heap.system.page_size());
        let at = heap.system.map(bytes, align_of::<Area>())? as *mut u8;
        // SAFETY: fresh memory, zeroed, of which nobody else knows.
        unsafe { (*at.cast::<Area>()).begin() };
        // ORDERING: Release pairs with the Acquire in `area`; Acquire on failure does so for an area that came first.
        match self.table[processor].compare_exchange(null_mut(), at, Ordering::Release, Ordering::Acquire) {
            Ok(_) => {
                H::event(Event::CpuCaches(self.areas() as u64));
                Some(at)
            }
            Err(other) => {
                heap.system.unmap(at as usize, bytes);
                (other != away()).then_some(other)
            }
        }
    }

    /// Gives back what all caches hold; `false` when the system does not let us.
    pub fn empty<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) -> bool {
        self.rseq().is_none_or(|rseq| (0..PROCESSORS).all(|p| self.empty_one(heap, rseq, p)))
    }

    /// Looks after the caches, from time to time: empties those of idle processors, and lets arrays shrink that were of no use.
    pub fn look<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) {
        let Some(rseq) = self.rseq().filter(|_| self.in_use()) else { return };
        let mut busy = false;
        for processor in 0..PROCESSORS {
            let at = self.table[processor].load(Relaxed);
            if at.is_null() || at == away() {
                continue;
            }
            // SAFETY: areas live for ever.
            if unsafe { (*at.cast::<Area>()).shrink() } {
                busy = true;
            } else {
                self.empty_one(heap, rseq, processor);
            }
        }
        self.in_use.store(busy, Relaxed);
    }

    fn empty_one<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, rseq: &Rseq, processor: usize) -> bool {
        let entry = &self.table[processor];
        if entry.load(Relaxed).is_null() {
            return true;
        }
        // ORDERING: Acquire pairs with the Release of whoever put the area there.
        let at = entry.swap(away(), Ordering::Acquire);
        if at == away() || at.is_null() {
            // Somebody is at it; or, between our two looks, nobody is: areas are never taken out for good.
            return true;
        }
        let alone = rseq.interrupt();
        if alone {
            // SAFETY: the area is out of the table, and every sequence that may have found it there was interrupted.
            unsafe { (*at.cast::<Area>()).give_all(heap) };
        }
        // ORDERING: Release pairs with the Acquire in `area`.
        entry.store(at, Ordering::Release);
        alone
    }

    /// In the child of a fork: what another thread had taken away stays away for good; its processor gets a new area.
    pub fn forked(&self) {
        for entry in &self.table {
            if entry.load(Relaxed) == away() {
                entry.store(null_mut(), Relaxed);
            }
        }
    }

    /// Bytes in free objects, as far as can be seen while others use them.
    pub fn bytes(&self) -> usize {
        if self.rseq().is_none() {
            return 0;
        }
        self.table.iter().map(|entry| entry.load(Relaxed)).filter(|at| !at.is_null()).fold(0, |sum, at| {
            // SAFETY: areas live for ever.
            let area = unsafe { &*at.cast::<Area>() };
            sum + (1..=CLASSES)
                .map(|c| area.counts[c].count.load(Relaxed) as usize * size_class::size_of_class(c))
                .sum::<usize>()
        })
    }

    /// How many processors have a cache.
    pub fn areas(&self) -> usize {
        self.table.iter().filter(|entry| !entry.load(Relaxed).is_null()).count()
    }
}

impl Area {
    fn begin(&self) {
        for class in 1..=CLASSES {
            self.counts[class].capacity.store(first_capacity(class), Relaxed);
        }
        self.left.store(AREA_BYTES, Relaxed);
    }

    /// Notes that a class's array was empty or full; returns how many it may hold from now on.
    fn missed(&self, class: usize) -> u32 {
        self.misses[class].fetch_add(1, Relaxed);
        let old = self.counts[class].capacity.load(Relaxed);
        let new = (2 * old).min(room(class));
        let bytes = (new - old) as i32 * size_class::size_of_class(class) as i32;
        if bytes == 0 {
            return old;
        }
        if self.left.fetch_sub(bytes, Relaxed) < bytes || !self.set_capacity(class, old, new) {
            self.left.fetch_add(bytes, Relaxed);
            return old;
        }
        new
    }

    /// Changes what a class's array may hold, unless somebody else has meanwhile: who does is the one who counts the difference (T4).
    fn set_capacity(&self, class: usize, old: u32, new: u32) -> bool {
        self.counts[class].capacity.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
    }

    /// Notes that a class's array was full of what nobody else lacks; returns how many it may hold from now on.
    fn overflowed(&self, class: usize) -> u32 {
        self.misses[class].fetch_add(1, Relaxed);
        let old = self.counts[class].capacity.load(Relaxed);
        let overflows = self.overflows[class].load(Relaxed);
        if overflows < LONG {
            self.overflows[class].store(overflows + 1, Relaxed);
            return old;
        }
        self.halve(class, old)
    }

    /// Halves the capacity of a class's array, `old`, down to what it has at first; returns the new one.
    fn halve(&self, class: usize, old: u32) -> u32 {
        let new = (old / 2).max(first_capacity(class));
        if new < old && self.set_capacity(class, old, new) {
            self.left.fetch_add((old - new) as i32 * size_class::size_of_class(class) as i32, Relaxed);
        }
        new.min(old)
    }

    /// Halves the capacity of arrays that were neither empty nor full since the last time; says whether anything changed in the area.
    fn shrink(&self) -> bool {
        let (mut sum, mut missed) = (0u32, false);
        for class in 1..=CLASSES {
            let counts = &self.counts[class];
            sum = sum.wrapping_mul(31).wrapping_add(counts.count.load(Relaxed));
            if self.misses[class].swap(0, Relaxed) > 0 {
                missed = true;
                continue;
            }
            self.halve(class, counts.capacity.load(Relaxed));
        }
        self.seen.swap(sum, Relaxed) != sum || missed
    }

    /// Gives all objects back to their slabs.
    ///
    /// # Safety
    /// No sequence is in the area, and the table does not hold it.
    unsafe fn give_all<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) {
        let mut first = 0;
        for class in 1..=CLASSES {
            let count = self.counts[class].count.swap(0, Relaxed) as usize;
            let mut chain = Chain::EMPTY;
            for slot in &self.slots[first..first + count] {
                // SAFETY: the array's first `count` pointers are free objects of the class, and ours now.
                unsafe { chain.push(slot.load(Relaxed)) };
            }
            first += room(class) as usize;
            // SAFETY: as above.
            unsafe { heap.give(class, chain) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
