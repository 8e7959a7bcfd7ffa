//! One cache: what its fast paths read, and what its lock protects.
//!
//! **State.** One page for each cache. Its first line is written when a cache is made and when it is destroyed, and only read by the fast
//! paths.
//!
//! **Unsafe.** Declares that a cache may go from one thread to another, with the program's pointer.

use super::paths::MOST_FILL;
use super::{
    ALIGN, Constructor, Destructor, NAME_MAX, NEVER, NO_ARRAYS, NO_COLOURS, Options, Reclaim, WORKING_SET_MS, hooks,
};
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_base::{Bytes, Pages};
use craton_os::{Event, Mutex};
use craton_slab::object::{BadLayout, Depot, ObjectLayout, ObjectSlabs};

/// In the place of the distance of an object's mark: it lies in the entry of its page.
pub(super) const IN_ENTRY: usize = usize::MAX;
/// So many calls that arrays have not served make them hold more.
const MANY_MISSES: u16 = 16;
/// Bytes of objects that an array and the depot exchange at a time, at most, for this alone.
const MOST_BYTES: usize = 64 << 10;
/// Objects from this stride on can have their mark there.
const LEAST_IN_ENTRY: usize = 64;

/// Whether a handle's cache has its objects' marks elsewhere than in their first words.
#[inline(always)]
pub(super) fn marks_elsewhere(handle: usize) -> bool {
    handle & 1 != 0
}

/// Whether it has them in their pages' entries.
#[inline(always)]
pub(super) fn marks_in_entries(handle: usize) -> bool {
    handle & 2 != 0
}

#[repr(C, align(4096))]
pub(super) struct Slot {
    /// The living cache's handle; 0 while there is none. It is the slot's address, and in the lower bits a generation,
    /// [`marks_in_entries`] and [`marks_elsewhere`].
    pub(super) handle: AtomicUsize,
    /// Where an object's mark lies in it, or [`IN_ENTRY`].
    pub(super) mark_at: AtomicUsize,
    generation: AtomicU32,
    /// The next free slot, plus 1; under the table's lock.
    pub(super) next_free: AtomicU32,
    /// Objects were given back that somebody waits for.
    pub(super) freed: Event,
    /// Somebody is to look after what the working set has left, or memory is short: a call that may run the program's functions.
    pub(super) wants_look: AtomicU32,
    /// The debugging kit looks at each object.
    pub(super) debugged: AtomicBool,
    pub(super) name: UnsafeCell<[u8; NAME_MAX + 1]>,
    pub(super) cache: Mutex<Cache>,
}

const _: () = assert!(cfg!(loom) || size_of::<Slot>() == ALIGN);

// SAFETY: the name is written while no cache lives in the slot; the rest is atomic, or under the lock.
unsafe impl Sync for Slot {}

impl Slot {
    /// The living cache's handle; 0 while there is none.
    #[inline(always)]
    pub(super) fn live(&self) -> usize {
        // ORDERING: Acquire pairs with the Release in `begin`: whoever sees the cache alive sees it set up.
        self.handle.load(Ordering::Acquire)
    }

    /// Puts a cache into the slot.
    pub(super) fn begin(&self, id: u16, mut cache: Cache, taken: u64) {
        let generation = self.generation.load(Relaxed).wrapping_add(1);
        self.generation.store(generation, Relaxed);
        let mark_at = cache.mark_at;
        self.mark_at.store(mark_at, Relaxed);
        self.wants_look.store(0, Relaxed);
        self.debugged.store(cache.is_debugged(), Relaxed);
        // SAFETY: no cache lives in the slot, and the table's lock is held.
        unsafe { *self.name.get() = cache.name };
        (cache.id, cache.taken_before) = (id, taken);
        *self.cache.lock() = cache;
        let kind = match mark_at {
            0 => 0,
            IN_ENTRY => 3,
            _ => 1,
        };
        let handle = core::ptr::from_ref(self) as usize + generation as usize * 4 % ALIGN + kind;
        // ORDERING: Release pairs with the Acquire in `live`.
        self.handle.store(handle, Ordering::Release);
    }

    /// No cache lives here any more.
    pub(super) fn end(&self) {
        self.handle.store(0, Relaxed);
    }

    pub(super) fn name(&self) -> [u8; NAME_MAX + 1] {
        // SAFETY: written before any cache of the slot lives; a report may meet a slot that changes hands, and names either.
        unsafe { *self.name.get() }
    }
}

/// What a cache's lock protects. Zeros are a cache that never was.
pub(super) struct Cache {
    pub(super) id: u16,
    pub(super) name: [u8; NAME_MAX + 1],
    pub(super) layout: ObjectLayout,
    pub(super) slabs: ObjectSlabs,
    pub(super) depot: Depot,
    /// Half of what an array holds, if that is more than a magazine has; and calls that arrays have not served since that was last looked at.
    fill: u16,
    misses: u16,
    /// Objects that the last such call exchanged, and whether it took one.
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
    /// Requests come to the slow path, each: the option, or the debugging kit.
    pub(super) closed: bool,
    /// What the debugging kit checks of the objects, which are then its buffers; 0 if they are not. And how many of them are out.
    pub(super) checks: u8,
    pub(super) buffers: u64,
    /// Objects that may be out at a time without failure.
    pub(super) reserved: usize,
    /// Those who sleep until an object comes back.
    pub(super) waiters: u32,
    /// What arrays had counted before the cache was made.
    pub(super) taken_before: u64,
    pub(super) slow_allocs: u64,
    /// Objects that the slow path itself took out of arrays.
    pub(super) moved: u64,
    pub(super) refused: u64,
    /// Objects constructed and destroyed since the start, and constructors that failed.
    pub(super) built: u64,
    pub(super) destroyed: u64,
    pub(super) failed: u64,
}

// SAFETY: the program's functions and argument are its own; it says that any thread may use the cache.
unsafe impl Send for Cache {}

impl Cache {
    /// A cache by options whose name and flags have been looked at.
    pub(super) fn new(options: &Options<'_>) -> Result<Self, BadLayout> {
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
        let checks = hooks::checks_of(options.name);
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
        })
    }

    /// Counts a call that its processor's array did not serve, one that takes an object or gives one back, and says how many objects the array
    /// and the depot shall exchange.
    ///
    /// The more such calls, the more arrays hold: by doubling, up to what one can hold and to [`MOST_BYTES`]. The first call of its kind exchanges
    /// what a magazine has, and each that follows it twice as many as the one before, up to half of an array: a program that takes a little more
    /// than its array has finds room in it for all of that when it gives it back.
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

    /// Objects that an array and the depot exchange at a time, at the most: half of what an array holds.
    pub(super) fn rounds(&self) -> usize {
        self.depot.rounds().max(self.fill.into()).min(MOST_FILL)
    }

    /// Has arrays hold less from now on, unless they miss it.
    pub(super) fn slow_down(&mut self) {
        (self.fill, self.misses) = (self.fill / 2, 0);
    }

    /// Of no cache.
    pub(super) fn clear(&mut self) {
        (self.constructor, self.destructor, self.reclaim, self.argument) = (None, None, None, null_mut());
    }
}

/// The slabs' layout for such objects, and where their marks lie. A free object of a cache with a constructor is not touched, so that
/// a small one gets a word behind it for the mark.
fn layout(size: usize, align: usize, constructed: bool) -> Result<(ObjectLayout, usize), BadLayout> {
    const WORD: usize = 8;
    // A bad size or alignment is to be told as it was given.
    let plain = ObjectLayout::of(size, align, constructed)?;
    if !constructed {
        let layout = ObjectLayout::of(size.max(2 * WORD), align, false)?;
        // The first word of a free object is its mark.
        return Ok((layout, 0));
    }
    if plain.stride() >= LEAST_IN_ENTRY {
        return Ok((plain, IN_ENTRY));
    }
    let mark_at = size.next_multiple_of(WORD);
    Ok((ObjectLayout::of(mark_at + WORD, align, true)?, mark_at))
}
