//! Per-CPU caches, for threads without a thread cache.
//!
//! **What.** A thread that allocates little, or one of many threads, uses its CPU's cache through
//! restartable sequences: no memory, set-up or flush for the thread. A thread that allocates much
//! gets a faster thread cache, as long as such threads are few.
//!
//! **From.** TEMERAIRE §3 (per-CPU caches). Arrays: a restartable sequence has one commit store.
//!
//! **State.** One area for each CPU, made at first use:
//! ```text
//! | (count, capacity)s | misses, overflows | bytes left to grow | arrays of pointers |   by class
//! ```
//! Cached objects bear the free mark. A capacity doubles on a miss or a useful overflow, within
//! [`AREA_BYTES`]. It halves with each overflow of a long freeing, since each object pins its slab,
//! and after a round of [`ProcessorCaches::look`] without a miss or overflow. `look` empties an
//! area unchanged since the last round.
//!
//! **Invariants.** *T3* an array's count is at most its place in the area. *T4* an area's
//! capacities add up to at most [`AREA_BYTES`] plus each class's first capacity.
//!
//! **Threads.** Counts and slots change in restartable sequences, or by the thread that put
//! [`AWAY`] in the table and interrupted all sequences. Capacities and misses are hints.
//!
//! **Failure.** Without restartable sequences each thread has a thread cache.
//!
//! **Cost.** 20 instructions to pop, 22 to push, in three lines of the area. Object caches' arrays
//! (`craton-objects`, `caches/arrays.rs`) take 4 and 7 fewer, but a 64 GiB reservation.
//!
//! **Unsafe.** Stores objects in arrays in mapped memory.

use crate::heap::Heap;
use crate::hooks::{Event, Hooks};
use crate::size_class::{self, CLASSES};
use core::cell::UnsafeCell;
use core::ptr::null_mut;
use craton_base::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering, Ordering::Relaxed};
use craton_base::{Clock, Machine, Mappings, Platform};
use craton_os::rseq::{PROCESSORS, Place, Rseq, Table};
use craton_slab::Chain;

/// Bytes by which an area's arrays may grow.
const AREA_BYTES: i32 = 1 << 20;
/// First capacity of an array, by objects and by bytes.
const FIRST_OBJECTS: u32 = 8;
const FIRST_BYTES: usize = 4 << 10;
/// This many overflows without a refill are a long freeing.
const LONG: u8 = 8;

/// Slots of an array: two batches.
const fn room(class: usize) -> u32 {
    2 * size_class::batch(class)
}

/// 0 for larger objects until the first miss: one of each class on each CPU is more than a small
/// program has.
const fn first_capacity(class: usize) -> u32 {
    match (FIRST_BYTES / size_class::size_of_class(class)) as u32 {
        n if n > FIRST_OBJECTS => FIRST_OBJECTS,
        n => n,
    }
}

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

/// One CPU's cache. All zeros: empty, without room.
#[repr(C, align(64))]
struct Area {
    counts: [Counts; CLASSES + 1],
    misses: [AtomicU32; CLASSES + 1],
    /// Overflows since the array was last empty.
    overflows: [AtomicU8; CLASSES + 1],
    left: AtomicI32,
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

/// Table entry while a thread holds the area.
#[repr(transparent)]
struct Away(UnsafeCell<Area>);

// SAFETY: never written: its arrays are empty and have no room.
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

pub struct ProcessorCaches {
    table: Table,
    /// Written before `on` is set.
    rseq: UnsafeCell<Option<Rseq>>,
    on: AtomicBool,
    in_use: AtomicBool,
}

// SAFETY: only `set_up` writes `rseq`, before `on` is set; the rest is atomic.
unsafe impl Sync for ProcessorCaches {}

impl ProcessorCaches {
    /// Offsets and sizes, for readers of another process's memory.
    pub const SHAPE: [(&'static str, usize); 4] = [
        ("processors.table", core::mem::offset_of!(Self, table)),
        ("processors.most", PROCESSORS),
        ("area.bytes", size_of::<Area>()),
        ("area.count", core::mem::offset_of!(Counts, count)),
    ];

    /// Byte offsets of a class's count and array in an area.
    pub const fn place(class: usize) -> Place {
        PLACES[class]
    }

    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub const EMPTY: Self = Self {
        table: [const { AtomicPtr::new(null_mut()) }; PROCESSORS],
        rseq: UnsafeCell::new(None),
        on: AtomicBool::new(false),
        in_use: AtomicBool::new(false),
    };

    /// Turns the caches on if threads have restartable sequences.
    ///
    /// # Safety
    /// Called once, before any other thread uses the caches.
    pub unsafe fn set_up<H: Hooks>(&self) {
        let found = Rseq::find();
        // SAFETY: by the contract no thread reads it yet.
        unsafe { *self.rseq.get() = found };
        // ORDERING: Release pairs with the Acquire in `rseq`.
        self.on.store(found.is_some(), Ordering::Release);
        H::event(Event::CpuCacheMode(found.map_or(0, |rseq| 1 + u64::from(rseq.is_compact()))));
    }

    #[inline]
    pub fn rseq(&self) -> Option<&Rseq> {
        // ORDERING: Acquire pairs with the Release in `set_up`. SAFETY: no longer written.
        if self.on.load(Ordering::Acquire) { unsafe { (*self.rseq.get()).as_ref() } } else { None }
    }

    /// [`ProcessorCaches::rseq`] without the check.
    ///
    /// # Safety
    /// [`ProcessorCaches::rseq`] has returned them to the calling thread.
    #[inline(always)]
    pub unsafe fn rseq_known(&self) -> &Rseq {
        // SAFETY: by the contract `rseq` is set, and no longer written.
        unsafe { (*self.rseq.get()).as_ref().unwrap_unchecked() }
    }

    /// Whether areas were used lately.
    pub fn in_use(&self) -> bool {
        self.in_use.load(Relaxed)
    }

    #[inline]
    pub fn pop(&self, rseq: &Rseq, class: usize) -> *mut u8 {
        // SAFETY: the table holds areas, which have an array at each place.
        unsafe { rseq.pop(&self.table, PLACES[class]) }
    }

    /// Pushes a marked object; `false` if full.
    #[inline]
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // The pointer is stored, not followed.
    pub fn push(&self, rseq: &Rseq, class: usize, object: *mut u8) -> bool {
        // SAFETY: as in `pop`.
        unsafe { rseq.push(&self.table, PLACES[class], object) }
    }

    /// Refills this CPU's empty array; returns one object, still marked, or null without memory.
    pub fn refill<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, rseq: &Rseq, class: usize) -> *mut u8 {
        let Some((home, area)) = self.area(heap, rseq) else {
            return heap.take(0, class, 1).pop().unwrap_or(null_mut());
        };
        area.overflows[class].store(0, Relaxed);
        let capacity = area.missed(class);
        let want = H::bound(class, (capacity / 2).clamp(1, size_class::batch(class)));
        let mut chain = heap.take(home, class, want);
        let first = heap.pop_marked(class, &mut chain).unwrap_or(null_mut());
        while let Some(object) = heap.pop_marked(class, &mut chain) {
            if !self.push(rseq, class, object) {
                // The thread has moved, or another thread has refilled the array.
                // SAFETY: the objects are the heap's, of this class, and owned here.
                unsafe {
                    heap.give_marked(class, object);
                    heap.give(class, chain);
                }
                break;
            }
        }
        first
    }

    /// Takes a marked object that found this CPU's array full, and flushes a batch.
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
            // A smaller capacity flushes the objects above it, too.
            let count = area.counts[class].count.load(Relaxed);
            while chain.len()
                < (capacity / 2).max(count.saturating_sub(capacity / 2)).clamp(1, size_class::batch(class))
            {
                let out = self.pop(rseq, class);
                if out.is_null() {
                    break;
                }
                // SAFETY: the sequence popped the object from the cache, so it is owned here.
                unsafe { chain.push(out) };
            }
            // SAFETY: a class's array holds objects of this class and heap.
            unsafe { heap.pass_on_or_give(home, class, chain) };
            if self.push(rseq, class, object) {
                return;
            }
        }
        // SAFETY: by the contract.
        unsafe { heap.give_marked(class, object) };
    }

    /// `None` while the area is away, or without memory.
    fn area<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, rseq: &Rseq) -> Option<(usize, &Area)> {
        if !self.in_use.load(Relaxed) {
            self.in_use.store(true, Relaxed);
        }
        let processor = rseq.processor()?;
        // ORDERING: Acquire pairs with the Release in `make`, which publishes the capacities.
        let area = match self.table[processor].load(Ordering::Acquire) {
            area if area == away() => return None,
            area if area.is_null() => self.make(heap, processor)?,
            area => area,
        };
        // SAFETY: areas are never freed.
        Some((heap.home(processor), unsafe { &*area.cast::<Area>() }))
    }

    #[cold]
    fn make<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>, processor: usize) -> Option<*mut u8> {
        let bytes = size_of::<Area>().next_multiple_of(heap.system.page_size());
        let at = heap.system.map(bytes, align_of::<Area>())? as *mut u8;
        // SAFETY: fresh zeroed memory, not yet published.
        unsafe { (*at.cast::<Area>()).begin() };
        // ORDERING: Release pairs with the Acquire in `area`; Acquire on failure does the same.
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

    /// Flushes all caches; `false` when the system cannot interrupt the sequences.
    pub fn empty<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) -> bool {
        self.rseq().is_none_or(|rseq| (0..PROCESSORS).all(|p| self.empty_one(heap, rseq, p)))
    }

    /// Periodic round: flushes idle CPUs' areas and halves unused capacities.
    pub fn look<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) {
        let Some(rseq) = self.rseq().filter(|_| self.in_use()) else { return };
        let mut busy = false;
        for processor in 0..PROCESSORS {
            let at = self.table[processor].load(Relaxed);
            if at.is_null() || at == away() {
                continue;
            }
            // SAFETY: areas are never freed.
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
        // ORDERING: Acquire pairs with the Release that stored the area.
        let at = entry.swap(away(), Ordering::Acquire);
        if at == away() || at.is_null() {
            // Another thread has it; or no area exists.
            return true;
        }
        let alone = rseq.interrupt();
        if alone {
            // SAFETY: the area is out of the table, and all sequences in it were interrupted.
            unsafe { (*at.cast::<Area>()).give_all(heap) };
        }
        // ORDERING: Release pairs with the Acquire in `area`.
        entry.store(at, Ordering::Release);
        alone
    }

    /// In a fork's child: areas that other threads held are lost; their CPUs get new ones.
    pub fn forked(&self) {
        for entry in &self.table {
            if entry.load(Relaxed) == away() {
                entry.store(null_mut(), Relaxed);
            }
        }
    }

    /// Bytes of free objects; approximate while other threads run.
    pub fn bytes(&self) -> usize {
        if self.rseq().is_none() {
            return 0;
        }
        self.table.iter().map(|entry| entry.load(Relaxed)).filter(|at| !at.is_null()).fold(0, |sum, at| {
            // SAFETY: areas are never freed.
            let area = unsafe { &*at.cast::<Area>() };
            sum + (1..=CLASSES)
                .map(|c| area.counts[c].count.load(Relaxed) as usize * size_class::size_of_class(c))
                .sum::<usize>()
        })
    }

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

    /// Counts a miss or useful overflow; returns the new capacity.
    fn missed(&self, class: usize) -> u32 {
        self.misses[class].fetch_add(1, Relaxed);
        let old = self.counts[class].capacity.load(Relaxed);
        let new = (2 * old).max(1).min(room(class));
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

    /// Fails if another thread did: the winner accounts for the difference (T4).
    fn set_capacity(&self, class: usize, old: u32, new: u32) -> bool {
        self.counts[class].capacity.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
    }

    /// Counts an overflow that no other thread needs; returns the new capacity.
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

    /// Halves, down to the first capacity; returns the new one.
    fn halve(&self, class: usize, old: u32) -> u32 {
        let new = (old / 2).max(first_capacity(class));
        if new < old && self.set_capacity(class, old, new) {
            self.left.fetch_add((old - new) as i32 * size_class::size_of_class(class) as i32, Relaxed);
        }
        new.min(old)
    }

    /// Halves capacities unused since the last round; returns whether the area changed.
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

    /// # Safety
    /// No sequence uses the area, and the table does not hold it.
    unsafe fn give_all<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) {
        let mut first = 0;
        for class in 1..=CLASSES {
            let count = self.counts[class].count.swap(0, Relaxed) as usize;
            let mut chain = Chain::EMPTY;
            for slot in &self.slots[first..first + count] {
                // SAFETY: the first `count` pointers are free objects of the class, owned here.
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
