//! The process's heap, and what lies over it.
//!
//! **What.** The core knows neither heaps with names nor object caches. Here stand the calls in which all three take part: an object
//! that the core finds in a page of another owner goes there; memory goes back from the top down; a fork locks in this order.
//!
//! **State.** One static in all, so that `craton core` reaches each part by its distance from the first.
//!
//! **Threads.** Order: heap with a name → object cache → the core's locks.
//!
//! **Unsafe.** Takes objects back.

use crate::caches::api::Here;
use crate::cpu_cache::thread::ThreadCache;
use crate::heap::Heap;
use crate::hooks::NoHooks;
use crate::objects::{caches, heaps};
use crate::route::{Found, Misuse};
use core::mem::offset_of;
use core::ops::Deref;
use craton_base::PAGE_SHIFT;
use craton_os::{CoarseClock, Region};

/// The core, as the process has it.
type Core = Heap<Region, CoarseClock, NoHooks>;

/// The heap with all that lies over it.
#[repr(C)]
pub(crate) struct ProcessHeap {
    core: Core,
    /// Heaps with names.
    pub(crate) heaps: heaps::Heaps,
    /// Object caches.
    pub(crate) caches: caches::Caches<CoarseClock, Here>,
}

impl Deref for ProcessHeap {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl ProcessHeap {
    /// Offsets and sizes in bytes, exported to `craton core`.
    pub(crate) const SHAPE: [(&'static str, usize); 3] = [
        ("heap.bytes", size_of::<Self>()),
        ("heap.own", offset_of!(Self, heaps)),
        ("heap.caches", offset_of!(Self, caches)),
    ];

    /// Without memory.
    pub(crate) const fn new() -> Self {
        Self {
            core: Heap::new(Region::EMPTY, CoarseClock),
            heaps: heaps::Heaps::new(),
            caches: caches::Caches::new(CoarseClock),
        }
    }

    /// Heaps with names, over the core.
    pub(crate) fn own(&self) -> heaps::Over<'_, Region, CoarseClock, NoHooks> {
        self.heaps.over(&self.core)
    }

    /// Object caches, over the core.
    #[inline(always)]
    pub(crate) fn cached(&self) -> caches::Over<'_, Region, CoarseClock, NoHooks, Here> {
        self.caches.over(&self.core)
    }

    /// As [`Heap::take_back`], also for objects of heaps with names.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn take_back(&self, cache: Option<*mut ThreadCache>, pointer: *mut u8) -> Result<(), Misuse> {
        // SAFETY: by the contract; what the core found is at the pointer.
        unsafe {
            match self.core.take_back(cache, pointer)? {
                None => Ok(()),
                Some(owned) => self.own().free(owned, pointer),
            }
        }
    }

    /// As [`Heap::resize`], also for objects of heaps with names.
    pub(crate) fn resize(&self, pointer: *mut u8, found: Found, size: usize) -> Option<*mut u8> {
        match found {
            Found::Owned(object) => self.own().resize(object, size).then_some(pointer),
            found => self.core.resize(pointer, found, size),
        }
    }

    /// Frees the memory of all free pages to the system; returns the bytes.
    pub(crate) fn release(&self) -> u64 {
        let before = self.pages.lock().backed_pages().0;
        self.own().trim();
        let trimmed = before.saturating_sub(self.pages.lock().backed_pages().0);
        (u64::from(trimmed) << PAGE_SHIFT) + self.core.release()
    }

    /// As [`Heap::relieve`]; object caches first.
    pub(crate) fn relieve(&self, most: u64) -> (u64, u64) {
        if self.used() > most {
            self.cached().relieve();
        }
        self.core.relieve(most)
    }

    /// Bytes of large objects.
    pub(crate) fn large_bytes(&self) -> u64 {
        self.core.large_bytes().saturating_sub(self.heaps.spare().bytes().0 as u64)
    }

    /// Takes every lock, for a fork.
    pub(crate) fn hold_for_fork(&self, nested: bool) {
        self.heaps.hold_for_fork(nested);
        self.caches.hold_for_fork(nested);
        self.core.hold_for_fork(nested);
    }

    /// Gives every lock up after a fork.
    ///
    /// # Safety
    /// As [`craton_os::Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe {
            self.core.release_after_fork();
            self.caches.release_after_fork();
            self.heaps.release_after_fork();
        }
    }
}
