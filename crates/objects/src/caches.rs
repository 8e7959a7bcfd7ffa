//! Object caches: free objects stay constructed.
//!
//! A freed object goes, still constructed, into this processor's array; the next request pops it
//! without a lock. Surplus moves to the depot and the slabs, whose objects stay constructed too.
//!
//! **From.** Bonwick94 §2.3, §3.4; Bonwick & Adams 2001 §3. We have one array per processor instead
//! of two magazines, and restartable sequences instead of a lock.
//!
//! ```text
//! slabs (raw) ─construct─► live ─free─► array ⇄ depot ─► slabs (constructed) ─destroy─► pages
//!                           ▲             │       │        │
//!                           └─────────────┴───────┴────────┘
//! ```
//! **Invariants.** *K1* a free object bears the mark, a live one does not; *K2* a page's entry
//! ([`pages`]) names the cache exactly while the cache has the page and has handed out an object on
//! it, and knows which were out ever; *K3* objects out of slabs = live + arrays + depot (+ objects
//! under construction); *K4* while a thread waits for an object, arrays are empty and have no room.
//!
//! **Threads.** Order of locks: table → cache → arrays → page heap. None is held while the
//! program's functions run. A refused call changes nothing.
//!
//! **Unsafe.** Releases locks that a fork took.

mod alloc;
mod arrays;
mod building;
mod cache;
mod destroy;
mod free;
mod limit;
pub mod name;
mod pages;
mod prefill;
mod quick;
mod shape;
mod stats;
#[cfg(all(test, not(loom)))]
mod tests;
mod trim;
mod watched;

use crate::process::{Process, Watch};
use crate::slots::Slots;
use arrays::Arrays;
use cache::{Cache, CacheSlots};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use craton_base::{Clock, Platform};
use craton_heap::Heap;
use craton_heap::Misuse;
use craton_heap::hooks::Hooks;
use craton_slab::object::BadLayout;
use pages::Entries;

pub use stats::{CacheStats, name_of};

pub const NAME_MAX: usize = 31;
const MOST: usize = 4096;
/// How long unneeded objects stay (Bonwick94 §3.4).
pub const WORKING_SET_MS: u32 = 15_000;
/// Nothing is freed by itself.
pub const NEVER: u32 = u32::MAX;

/// Returns 0 on success. Any other value, or unwinding, is a failure that left nothing behind.
pub type Constructor = unsafe extern "C-unwind" fn(object: *mut c_void, argument: *mut c_void) -> c_int;
pub type Destructor = unsafe extern "C-unwind" fn(object: *mut c_void, argument: *mut c_void);
/// Memory is short: free objects of the cache.
pub type Reclaim = unsafe extern "C-unwind" fn(argument: *mut c_void);

pub const NO_ARRAYS: u32 = 1;
/// All slabs begin objects at the same place.
pub const NO_COLOURS: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// At most [`NAME_MAX`] bytes of printable UTF-8 without `"`, `\`, `:`, `+`, `,`, `=`; not a
    /// number, `large` or `malloc`, which `debug` targets ([`name`]).
    pub name: &'a [u8],
    /// 1 byte to 1 MiB.
    pub size: usize,
    /// A power of two up to 1 MiB; 0: 8.
    pub align: usize,
    /// `None`: objects are raw memory.
    pub constructor: Option<Constructor>,
    pub destructor: Option<Destructor>,
    pub reclaim: Option<Reclaim>,
    /// Of all three functions.
    pub argument: *mut c_void,
    /// The most objects at a time, free ones included; 0: no limit.
    pub limit_objects: usize,
    /// The most bytes of slabs; 0: no limit.
    pub limit_bytes: usize,
    /// 0: [`WORKING_SET_MS`]; or [`NEVER`].
    pub working_set_ms: u32,
    pub flags: u32,
}

impl Options<'_> {
    pub const fn raw(size: usize) -> Options<'static> {
        Options {
            name: b"",
            size,
            align: 0,
            constructor: None,
            destructor: None,
            reclaim: None,
            argument: core::ptr::null_mut(),
            limit_objects: 0,
            limit_bytes: 0,
            working_set_ms: 0,
            flags: 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Or too many caches.
    NoMemory,
    Name,
    Layout(BadLayout),
    Flags,
    Functions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Misuse(Misuse),
    /// Or a limit.
    NoMemory,
    TimedOut,
    /// The thread is in a constructor or destructor of this cache.
    Recursive,
    Constructor,
}

impl From<Misuse> for Fault {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

pub struct Caches<C: Clock, P: Process + Watch> {
    slots: Slots<CacheSlots>,
    entries: Entries,
    arrays: Arrays<P>,
    clock: C,
    process: PhantomData<fn() -> P>,
}

pub struct Over<'a, F: Platform, C: Clock, H: Hooks, P: Process + Watch> {
    caches: &'a Caches<C, P>,
    heap: &'a Heap<F, C, H>,
}

impl<C: Clock, P: Process + Watch> Caches<C, P> {
    pub const fn new(clock: C) -> Self {
        Self { slots: Slots::new(), entries: Entries::new(), arrays: Arrays::new(), clock, process: PhantomData }
    }

    /// `heap` is always the same.
    #[inline(always)]
    pub fn over<'a, F: Platform, H: Hooks>(&'a self, heap: &'a Heap<F, C, H>) -> Over<'a, F, C, H, P> {
        Over { caches: self, heap }
    }

    pub fn check(&self, handle: usize) -> Result<(), Misuse> {
        self.slots.find(handle).map(|_| ())
    }

    pub fn name(&self, id: u16) -> [u8; NAME_MAX + 1] {
        if usize::from(id) < self.slots.used() { self.slots.get(id).shared.name() } else { [0; NAME_MAX + 1] }
    }

    pub fn any_made(&self) -> bool {
        self.slots.used() > 0
    }

    pub fn lock_for_fork(&self, nested: bool) {
        self.slots.lock_for_fork(nested);
        self.arrays.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`craton_os::Mutex::release_after_fork`].
    pub unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe {
            self.arrays.release_after_fork();
            self.slots.release_after_fork();
        }
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    pub fn create(&self, options: &Options<'_>) -> Result<usize, Refused> {
        if !name::is_name(options.name) {
            return Err(Refused::Name);
        }
        if options.flags & !(NO_ARRAYS | NO_COLOURS) != 0 {
            return Err(Refused::Flags);
        }
        if options.destructor.is_some() && options.constructor.is_none() {
            return Err(Refused::Functions);
        }
        let cache = Cache::new(options, P::checks_of(options.name)).map_err(Refused::Layout)?;
        let Caches { slots, entries, arrays, .. } = self.caches;
        let mut free = slots.lock_free();
        entries.reserve(self.heap).ok_or(Refused::NoMemory)?;
        let id = slots.alloc(&mut free).ok_or(Refused::NoMemory)?;
        let bits = slots.get(id).begin(id, cache, arrays.taken(id));
        Ok(slots.publish(id, bits))
    }
}
