//! Object caches of the program's own: objects that stay constructed while they are free.
//!
//! **What.** A cache has objects of one size, which its constructor makes once and which come back in that state. Freed objects go into
//! this processor's array, from where the next request takes them without a lock; what an array has too many of lies in the cache's
//! depot; what the depot has not needed for a while is destroyed and goes back to the slabs, and complete slabs to the page heap.
//!
//! **From.** Bonwick94 §2.3 (the interface) and §3.4 (working sets); Bonwick & Adams 2001 §3 (processors' layer, depot, arrays that
//! grow with contention). Where we differ: one array for each processor instead of two magazines, by restartable
//! sequences instead of a lock, from which half goes to the depot as a magazine; slabs keep objects constructed, too, so that
//! a free for which no magazine can be had needs no memory; constructors and destructors run without a lock.
//!
//! **State.** A slot for each cache in one reservation, as heaps of their own have ([`crate::heaps`]); a handle is the slot's address
//! and a generation. An object that a cache has made is in one of these places:
//! ```text
//! slabs (raw) ──construct──► out (the program's) ──free──► array of a processor ⇄ depot ──► slabs (constructed) ──destroy──► pages
//!                                ▲                              │               │            │
//!                                └──────────────────────────────┴───────────────┴────────────┘
//! ```
//!
//! **Invariants.** K1 of an object that was freed the mark says so until it goes out again, and of one that is out it does not; K2 a page's
//! entry ([`pages`]) names the cache exactly while the cache has the page and has handed out an object on it; K3 what the slabs have out =
//! what the program has + arrays + depot (+ objects under construction); K4 while somebody waits for an object, arrays are empty and
//! have no room.
//!
//! **Threads.** A cache's lock is held over each step of the slow path, never over a call of the program's functions. Order: table →
//! cache → arrays → page heap. A fork takes them all.
//!
//! **Failure.** No memory and a limit that is reached are null; so is a constructor that fails, after which the object is raw again. A bad
//! handle or pointer is a [`Misuse`] that has changed nothing.
//!
//! **Unsafe.** Keeps the caches in a mapping, in which zeros are caches that were never used.

pub mod api;
mod arrays;
mod building;
pub(crate) mod hooks;
pub(crate) mod name;
mod pages;
mod paths;
mod shape;
mod shrink;
mod slot;
pub(crate) mod stats;

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::route::Misuse;
use arrays::Arrays;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering, Ordering::Relaxed};
use craton_base::{Clock, Floor};
use craton_os::{Guard, Mutex, mapping};
use craton_slab::object::BadLayout;
use pages::Entries;
use slot::{Cache, Slot};

pub use paths::Fault;
pub use stats::CacheStats;

/// Bytes of a cache's name, at most.
pub const NAME_MAX: usize = 31;
/// Caches that there may be at a time.
pub(crate) const MOST: usize = 4096;
pub(crate) const ALIGN: usize = 4096;
/// The class that the records of caches' pages name, which is none.
pub(crate) const CLASS: u8 = u8::MAX;
/// Milliseconds for which what is not needed stays, unless a cache says otherwise (Bonwick94 §3.4).
pub const WORKING_SET_MS: u32 = 15_000;
/// As an interval: nothing goes back by itself.
pub const NEVER: u32 = u32::MAX;

/// Makes an object at `object`; anything but 0 says that it failed, and has left nothing behind. May unwind, which is a failure likewise.
pub type Constructor = unsafe extern "C-unwind" fn(object: *mut c_void, argument: *mut c_void) -> c_int;
/// Ends what the constructor made.
pub type Destructor = unsafe extern "C-unwind" fn(object: *mut c_void, argument: *mut c_void);
/// Asks the program to give objects of the cache back, because memory is short.
pub type Reclaim = unsafe extern "C-unwind" fn(argument: *mut c_void);

/// The flag that keeps a cache from having arrays: each request takes its lock.
pub const NO_ARRAYS: u32 = 1;
/// The flag that puts the objects of all slabs at the same place, as without colours.
pub const NO_COLOURS: u32 = 2;

/// How a cache is made.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// At most [`NAME_MAX`] bytes of UTF-8 that people can read and `debug` can have as a target: without control characters, others that cannot be
    /// seen, `"`, `\`, `:`, `+`, `,` and `=`; no number, `large` or `malloc`.
    pub name: &'a [u8],
    /// Bytes of an object, 1 to 1 MiB.
    pub size: usize,
    /// What its address is a multiple of: a power of two up to 1 MiB; 0 for 8.
    pub align: usize,
    /// Makes an object; `None`: objects are raw memory.
    pub constructor: Option<Constructor>,
    /// Ends one.
    pub destructor: Option<Destructor>,
    /// Called when memory is short.
    pub reclaim: Option<Reclaim>,
    /// What they are given.
    pub argument: *mut c_void,
    /// Objects that there may be at a time, free ones included; 0 for no limit.
    pub limit_objects: usize,
    /// Bytes that its slabs may take; 0 for no limit.
    pub limit_bytes: usize,
    /// Milliseconds after which what was not needed goes back; 0 for [`WORKING_SET_MS`], [`NEVER`].
    pub working_set_ms: u32,
    /// [`NO_ARRAYS`], [`NO_COLOURS`], or both.
    pub flags: u32,
}

/// Why there is no new cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No memory, or too many caches.
    NoMemory,
    /// The name is too long, not UTF-8, or has characters that are not allowed.
    Name,
    /// Objects of such a size or alignment cannot be had.
    Layout(BadLayout),
    /// No such flag.
    Flags,
    /// A destructor without a constructor: nothing would be there for it to end.
    Functions,
}

/// All caches over one heap.
pub(crate) struct Caches {
    /// Address of slot 0; 0 before the first cache.
    base: AtomicUsize,
    /// Slots that have ever been used: the first so many.
    used: AtomicUsize,
    /// The first free slot, plus 1.
    free: Mutex<u32>,
    entries: Entries,
    arrays: Arrays,
}

impl Caches {
    /// Without caches.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new table.
    pub(crate) const NONE: Self = Self {
        base: AtomicUsize::new(0),
        used: AtomicUsize::new(0),
        free: Mutex::new(0),
        entries: Entries::NONE,
        arrays: Arrays::NONE,
    };

    fn slot(&self, id: u16) -> &Slot {
        debug_assert!(usize::from(id) < self.used.load(Relaxed));
        let base = self.base.load(Relaxed) as *const Slot;
        // SAFETY: numbers are given to slots of the mapping only, which stays; zeros are a slot that was never used.
        unsafe { &*base.add(id.into()) }
    }

    /// Makes a cache; returns its handle.
    pub(crate) fn create<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        options: &Options<'_>,
    ) -> Result<usize, Refused> {
        if !name::is_name(options.name) {
            return Err(Refused::Name);
        }
        if options.flags & !(NO_ARRAYS | NO_COLOURS) != 0 {
            return Err(Refused::Flags);
        }
        if options.destructor.is_some() && options.constructor.is_none() {
            return Err(Refused::Functions);
        }
        let cache = Cache::new(options).map_err(Refused::Layout)?;
        let mut free = self.free.lock();
        self.entries.reserve(under).ok_or(Refused::NoMemory)?;
        let id = self.take_slot(&mut free).ok_or(Refused::NoMemory)?;
        let slot = self.slot(id);
        slot.begin(id, cache, self.arrays.taken(id));
        Ok(slot.live())
    }

    fn take_slot(&self, free: &mut u32) -> Option<u16> {
        if let Some(id) = free.checked_sub(1) {
            *free = self.slot(id as u16).next_free.load(Relaxed);
            return Some(id as u16);
        }
        if self.base.load(Relaxed) == 0 {
            let bytes = MOST * size_of::<Slot>();
            // The bits of an address below all slots' bytes are a slot's number, and its handle's own.
            let at = mapping::map(bytes, bytes.next_power_of_two())?;
            mapping::advise_small(at, bytes);
            self.base.store(at, Relaxed);
        }
        let id = self.used.load(Relaxed);
        if id == MOST {
            return None;
        }
        // ORDERING: Release pairs with the Acquire in `slot_of`: whoever counts the slot sees the mapping.
        self.used.store(id + 1, Ordering::Release);
        Some(id as u16)
    }

    /// The slot that a handle points at, whether its cache lives or not.
    fn slot_of(&self, handle: usize) -> Result<u16, Misuse> {
        // ORDERING: Acquire pairs with the Release in `take_slot`.
        let used = self.used.load(Ordering::Acquire);
        let offset = (handle & !(ALIGN - 1)).wrapping_sub(self.base.load(Relaxed));
        if offset >= used * size_of::<Slot>() || !offset.is_multiple_of(size_of::<Slot>()) {
            return Err(Misuse::NoCache);
        }
        Ok((offset / size_of::<Slot>()) as u16)
    }

    /// The cache that a handle stands for.
    fn resolve(&self, handle: usize) -> Result<(u16, &Slot), Misuse> {
        let id = self.slot_of(handle)?;
        let slot = self.slot(id);
        if slot.live() == handle { Ok((id, slot)) } else { Err(Misuse::CacheDestroyed) }
    }

    /// The same, locked.
    fn lock(&self, handle: usize) -> Result<(u16, &Slot, Guard<'_, Cache>), Misuse> {
        let (id, slot) = self.resolve(handle)?;
        let cache = slot.cache.lock();
        // Until the lock was ours the cache could be destroyed, and the slot used again.
        if slot.live() == handle { Ok((id, slot, cache)) } else { Err(Misuse::CacheDestroyed) }
    }

    /// The living caches, by number.
    fn each_slot(&self) -> impl Iterator<Item = (u16, &Slot)> {
        // ORDERING: Acquire pairs with the Release in `take_slot`.
        let used = self.used.load(Ordering::Acquire);
        (0..used as u16).map(|id| (id, self.slot(id))).filter(|(_, slot)| slot.live() != 0)
    }

    /// The name of cache `id`, for reports.
    pub(crate) fn name(&self, id: u16) -> [u8; NAME_MAX + 1] {
        // ORDERING: Acquire pairs with the Release in `take_slot`.
        if usize::from(id) < self.used.load(Ordering::Acquire) { self.slot(id).name() } else { [0; NAME_MAX + 1] }
    }

    /// Whether there ever was a cache.
    pub(crate) fn any_made(&self) -> bool {
        self.used.load(Relaxed) > 0
    }

    /// Takes every lock, for a fork.
    pub(crate) fn hold_for_fork(&self, nested: bool) {
        self.free.hold_for_fork(nested);
        (0..self.used.load(Relaxed)).for_each(|id| self.slot(id as u16).cache.hold_for_fork(nested));
        self.arrays.hold_for_fork(nested);
    }

    /// Gives every lock up after a fork.
    ///
    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract; no slot was added while the table's lock was held.
        unsafe {
            self.arrays.release_after_fork();
            (0..self.used.load(Relaxed)).for_each(|id| self.slot(id as u16).cache.release_after_fork());
            self.free.release_after_fork();
        }
    }
}
