//! One cache: its fast paths read the first line of its page.
//!
//! **Unsafe.** A cache may change threads, with the program's pointer.

use super::arrays::MOST_FILL;
use super::{Constructor, Destructor, MOST, NAME_MAX, NEVER, NO_ARRAYS, NO_COLOURS, Options, Reclaim, WORKING_SET_MS};
use crate::slots::{Kind, SLOT_ALIGN, Slot};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use craton_base::{Bytes, Pages};
use craton_heap::Misuse;
use craton_os::{Event, Guard, Rank};
use craton_slab::object::{BadLayout, Depot, ObjectLayout, ObjectSlabs};

pub(super) const IN_ENTRY: usize = usize::MAX;
/// Array misses until an array holds more.
const MANY_MISSES: u16 = 16;
const MOST_BYTES: usize = 64 << 10;
/// Strides from here on have marks in pages' entries.
const LEAST_IN_ENTRY: usize = 64;

/// Marks are not objects' first words.
#[inline(always)]
pub(super) fn marks_elsewhere(handle: usize) -> bool {
    handle & 1 != 0
}

#[inline(always)]
pub(super) fn marks_in_entries(handle: usize) -> bool {
    handle & 2 != 0
}

/// Bits of a handle below `STEP`: [`marks_elsewhere`], [`marks_in_entries`].
pub(super) struct CacheSlots;

// SAFETY: zeros are a cache that never was.
unsafe impl Kind for CacheSlots {
    type Locked = Cache;
    type Shared = Shared;
    const MOST: usize = MOST;
    const ALIGN: usize = (MOST * SLOT_ALIGN).next_power_of_two();
    const STEP: usize = 4;
    const RANK: Rank = Rank::CacheTable;
    const UNKNOWN: Misuse = Misuse::NoCache;
    const GONE: Misuse = Misuse::CacheDestroyed;
}

const _: () = assert!(cfg!(loom) || size_of::<Slot<CacheSlots>>() == SLOT_ALIGN);

#[repr(C)]
pub(super) struct Shared {
    pub(super) mark_at: AtomicUsize,
    pub(super) freed: Event,
    /// Work ([`super::trim`]) for the next slow call.
    pub(super) deferred: AtomicU32,
    pub(super) watched: AtomicBool,
    pub(super) name: UnsafeCell<[u8; NAME_MAX + 1]>,
}

// SAFETY: the name is written while no cache lives in the slot; the rest is atomic.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn name(&self) -> [u8; NAME_MAX + 1] {
        // SAFETY: written before a cache lives; a racing report prints either name.
        unsafe { *self.name.get() }
    }
}

impl Slot<CacheSlots> {
    /// Returns the kind's bits of the handle.
    pub(super) fn begin(&self, id: u16, mut cache: Cache, taken: u64) -> usize {
        let mark_at = cache.mark_at;
        self.shared.mark_at.store(mark_at, Relaxed);
        self.shared.deferred.store(0, Relaxed);
        self.shared.watched.store(cache.is_watched(), Relaxed);
        // SAFETY: no cache lives in the slot; the table's lock is held.
        unsafe { *self.shared.name.get() = cache.name };
        (cache.id, cache.taken_before) = (id, taken);
        *self.locked.lock() = cache;
        match mark_at {
            0 => 0,
            IN_ENTRY => 3,
            _ => 1,
        }
    }

    /// Counts contention: arrays are too small.
    #[inline]
    pub(super) fn lock_counted(&self, handle: usize) -> Result<Guard<'_, Cache>, Misuse> {
        self.lock(handle, |lock| match lock.try_lock() {
            Some(cache) => cache,
            None => {
                let mut cache = lock.lock();
                cache.depot.count_contended();
                cache
            }
        })
    }

    pub(super) fn announce(&self, wait: bool) {
        if wait {
            self.shared.freed.announce();
        }
    }
}

/// Zeros: never was.
pub(super) struct Cache {
    pub(super) id: u16,
    pub(super) name: [u8; NAME_MAX + 1],
    pub(super) layout: ObjectLayout,
    pub(super) slabs: ObjectSlabs,
    pub(super) depot: Depot,
    fill: u16,
    misses: u16,
    /// Objects that the last miss exchanged; and whether it was an allocation.
    exchanged: u16,
    took: bool,
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) mark_at: usize,
    pub(super) constructor: Option<Constructor>,
    pub(super) destructor: Option<Destructor>,
    pub(super) reclaim: Option<Reclaim>,
    pub(super) argument: *mut c_void,
    pub(super) limit_objects: usize,
    pub(super) limit_pages: Pages,
    pub(super) held: Pages,
    /// Every request is slow.
    pub(super) closed: bool,
    /// 0: not watched. Else objects are the watcher's buffers.
    pub(super) checks: u16,
    pub(super) buffers: u64,
    /// The promise of `prefill`.
    pub(super) reserved: usize,
    pub(super) waiters: u32,
    /// Taken by earlier caches of the slot.
    pub(super) taken_before: u64,
    pub(super) slow_allocs: u64,
    pub(super) moved: u64,
    pub(super) refused: u64,
    pub(super) built: u64,
    pub(super) destroyed: u64,
    pub(super) failed: u64,
    pub(super) building: u32,
}

// SAFETY: any thread may use functions and argument, by the program's promise.
unsafe impl Send for Cache {}

impl Cache {
    pub(super) fn new(options: &Options<'_>, checks: u16) -> Result<Self, BadLayout> {
        let (layout, mark_at) = layout(options.size, options.align, options.constructor.is_some())?;
        let mut name = [0; NAME_MAX + 1];
        name[..options.name.len()].copy_from_slice(options.name);
        let (mut slabs, mut depot) = (ObjectSlabs::new(layout), Depot::new(layout.stride()));
        slabs.set_colouring(options.flags & NO_COLOURS == 0);
        depot.set_interval_ns(match options.working_set_ms {
            0 => u64::from(WORKING_SET_MS) * 1_000_000,
            NEVER => u64::MAX,
            ms => u64::from(ms) * 1_000_000,
        });
        Ok(Self {
            id: 0,
            name,
            layout,
            slabs,
            depot,
            fill: 0,
            misses: 0,
            exchanged: 0,
            took: false,
            size: options.size,
            align: options.align.max(8),
            mark_at,
            constructor: options.constructor,
            destructor: options.destructor,
            reclaim: options.reclaim,
            argument: options.argument,
            limit_objects: options.limit_objects,
            limit_pages: Bytes(options.limit_bytes).pages_up().unwrap_or(Pages(u32::MAX)),
            held: Pages(0),
            closed: options.flags & NO_ARRAYS != 0 || checks != 0,
            checks,
            buffers: 0,
            reserved: 0,
            waiters: 0,
            taken_before: 0,
            slow_allocs: 0,
            moved: 0,
            refused: 0,
            built: 0,
            destroyed: 0,
            failed: 0,
            building: 0,
        })
    }

    /// Returns how many objects array and depot exchange: a magazine for the first alloc after a
    /// free (or reverse), then twice as many each time. [`MANY_MISSES`] misses double an array's
    /// capacity.
    pub(super) fn pace(&mut self, takes: bool) -> usize {
        self.misses += 1;
        if self.misses >= MANY_MISSES {
            self.misses = 0;
            self.fill = (2 * self.rounds()).min(MOST_FILL).min((MOST_BYTES / self.layout.stride()).max(1)) as u16;
        }
        let follows = self.took == takes;
        self.took = takes;
        let twice = if follows { 2 * usize::from(self.exchanged) } else { 0 };
        self.exchanged = twice.clamp(self.depot.rounds().min(self.rounds()), self.rounds()) as u16;
        self.exchanged.into()
    }

    /// Half of the array's capacity.
    pub(super) fn rounds(&self) -> usize {
        self.depot.rounds().max(self.fill.into()).min(MOST_FILL)
    }

    pub(super) fn shrink_arrays(&mut self) {
        (self.fill, self.misses) = (self.fill / 2, 0);
    }

    pub(super) fn clear(&mut self) {
        (self.constructor, self.destructor, self.reclaim, self.argument) = (None, None, None, null_mut());
    }
}

/// A free object with a constructor stays untouched: a small one gets a word behind it.
fn layout(size: usize, align: usize, constructed: bool) -> Result<(ObjectLayout, usize), BadLayout> {
    const WORD: usize = 8;
    // Errors name size and alignment as given.
    let plain = ObjectLayout::of(size, align, constructed)?;
    if !constructed {
        let layout = ObjectLayout::of(size.max(2 * WORD), align, false)?;
        return Ok((layout, 0));
    }
    if plain.stride() >= LEAST_IN_ENTRY {
        return Ok((plain, IN_ENTRY));
    }
    let mark_at = size.next_multiple_of(WORD);
    Ok((ObjectLayout::of(mark_at + WORD, align, true)?, mark_at))
}
