//! Heaps with names, each destroyed whole.
//!
//! **Invariants.** *H4* a page's mark is `OWNED` exactly while a heap's slab or large object has
//! it; its record names heap and class. *H5* `spare` counts pages that heaps hold and do not use.
//!
//! **Unsafe.** Frees objects, and releases locks that a fork took.

mod chunks;
mod own;
mod pages;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::slots::{Kind, Slot, Slots};
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use craton_base::{Bytes, Clock, Pages, Platform};
use craton_heap::Heap;
use craton_heap::hooks::Hooks;
use craton_heap::owned::Owned;
use craton_heap::{Found, Misuse};
use craton_os::Rank;
use craton_slab::SlabStats;
use own::OwnHeap;
pub use pages::Place;

pub const NAME_MAX: usize = 31;
pub const BUILT_IN: usize = 4;

#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// At most [`NAME_MAX`] printable ASCII bytes without `"` and `\`.
    pub name: &'a [u8],
    /// The most bytes, rounded up to pages of 8 KiB; 0: no limit.
    pub limit: usize,
    pub place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Or too many heaps.
    NoMemory,
    Name,
}

craton_tables::count_struct! { heap,
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(C)]
    pub struct OwnStats {
        /// Ended by a 0.
        pub name: [u8; NAME_MAX + 1],
    }
}

struct OwnSlots;

// SAFETY: zeros are an unused `OwnHeap`.
unsafe impl Kind for OwnSlots {
    type Locked = OwnHeap;
    type Shared = ();
    const MOST: usize = 1 << 16;
    const LEAST: usize = 16;
    const RANK: Rank = Rank::HeapTable;
    const UNKNOWN: Misuse = Misuse::NoHeap;
    const GONE: Misuse = Misuse::HeapDestroyed;
}

pub struct Heaps {
    slots: Slots<OwnSlots>,
    spare: AtomicUsize,
    built_in: [AtomicU32; BUILT_IN],
}

pub struct Over<'a, F: Platform, C: Clock, H: Hooks> {
    heaps: &'a Heaps,
    heap: &'a Heap<F, C, H>,
}

impl Heaps {
    /// For `craton core`.
    pub const SHAPE: [(&'static str, usize); 6] = [
        ("own.slots", offset_of!(Self, slots) + Slots::<OwnSlots>::SHAPE[0]),
        ("own.used", offset_of!(Self, slots) + Slots::<OwnSlots>::SHAPE[1]),
        ("own.slot.bytes", size_of::<Slot<OwnSlots>>()),
        ("own.slot.generation", Slot::<OwnSlots>::SHAPE[1]),
        ("own.slot.lock", Slot::<OwnSlots>::SHAPE[3]),
        ("own.slot.name", Slot::<OwnSlots>::SHAPE[4] + OwnHeap::NAME),
    ];

    pub const fn new() -> Self {
        Self { slots: Slots::new(), spare: AtomicUsize::new(0), built_in: [const { AtomicU32::new(0) }; BUILT_IN] }
    }

    /// `heap` is always the same.
    pub fn over<'a, F: Platform, C: Clock, H: Hooks>(&'a self, heap: &'a Heap<F, C, H>) -> Over<'a, F, C, H> {
        Over { heaps: self, heap }
    }

    pub fn spare(&self) -> Pages {
        Pages(self.spare.load(Relaxed) as u32)
    }

    fn change_spare(&self, more: Pages, less: Pages) {
        self.spare.fetch_add((more.0 as usize).wrapping_sub(less.0 as usize), Relaxed);
    }

    pub fn create(&self, options: Options<'_>) -> Result<usize, Refused> {
        let allowed = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\');
        if options.name.len() > NAME_MAX || !options.name.iter().all(allowed) {
            return Err(Refused::Name);
        }
        let limit = Bytes(options.limit).pages_up().unwrap_or(Pages(u32::MAX));
        let mut free = self.slots.lock_free();
        let id = self.slots.alloc(&mut free).ok_or(Refused::NoMemory)?;
        self.slots.get(id).locked.lock().begin(id, options.name, options.place, limit);
        Ok(self.slots.publish(id, 0))
    }

    pub fn check(&self, handle: usize) -> Result<(), Misuse> {
        self.slots.find(handle).map(|_| ())
    }

    /// Made at its first use; `None`: no memory.
    pub fn built_in(&self, which: usize, name: &[u8], place: Place) -> Option<usize> {
        let id = match self.built_in[which].load(Relaxed) {
            0 => {
                let handle = self.create(Options { name, limit: 0, place }).ok()?;
                let id = self.slots.find(handle).ok()?.0;
                match self.built_in[which].compare_exchange(0, u32::from(id) + 1, Relaxed, Relaxed) {
                    Ok(_) => id,
                    Err(other) => {
                        // Another thread was faster.
                        let mut free = self.slots.lock_free();
                        self.slots.retire(id);
                        self.slots.free(&mut free, id);
                        (other - 1) as u16
                    }
                }
            }
            made => (made - 1) as u16,
        };
        // The count of used slots makes the slot's mapping known here.
        (usize::from(id) < self.slots.used()).then(|| self.slots.get(id).handle())
    }

    pub fn stats(&self, handle: usize) -> Result<OwnStats, Misuse> {
        Ok(self.slots.lock(handle)?.2.stats())
    }

    pub fn each(&self, mut each: impl FnMut(OwnStats)) {
        for (id, _) in self.slots.living() {
            if let Some(stats) = self.slots.lock_id(id).map(|h| h.stats()) {
                each(stats);
            }
        }
    }

    pub fn class_stats(&self, id: u16, class: usize) -> Option<SlabStats> {
        let is_used = usize::from(id) < self.slots.used();
        if is_used { self.slots.lock_id(id).map(|h| h.class_stats(class)) } else { None }
    }

    pub fn lock_for_fork(&self, nested: bool) {
        self.slots.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`craton_os::Mutex::release_after_fork`].
    pub unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.slots.release_after_fork() };
    }
}

impl<F: Platform, C: Clock, H: Hooks> Over<'_, F, C, H> {
    pub fn destroy(&self, handle: usize) -> Result<(), Misuse> {
        let slots = &self.heaps.slots;
        let (id, _) = slots.find(handle)?;
        if self.heaps.built_in.iter().any(|b| b.load(Relaxed) == u32::from(id) + 1) {
            return Err(Misuse::HeapStays);
        }
        // The free list first: orders two threads that destroy one heap.
        let mut free = slots.lock_free();
        let (_, _, mut own) = slots.lock(handle)?;
        self.destroy_own(&mut own);
        slots.retire(id);
        slots.free(&mut free, id);
        Ok(())
    }

    /// Null: no memory, the limit, or an alignment above 2 MiB.
    pub fn alloc(&self, handle: usize, size: usize, align: usize, zero: bool) -> Result<*mut u8, Misuse> {
        Ok(self.alloc_in(&mut self.heaps.slots.lock(handle)?.2, size, align, zero))
    }

    /// Null: no memory.
    pub fn alloc_beside(&self, object: Owned, size: usize) -> *mut u8 {
        self.heaps.slots.lock_id(object.heap).map_or(null_mut(), |mut own| self.alloc_in(&mut own, size, 1, false))
    }

    /// [`Misuse::Unallocated`]: never an object, or another thread freed it.
    /// # Safety
    /// The heap found `object` at `pointer`; it is given up.
    pub unsafe fn free(&self, object: Owned, pointer: *mut u8) -> Result<(), Misuse> {
        let mut own = self.heaps.slots.lock_id(object.heap).ok_or(Misuse::Unallocated)?;
        // SAFETY: by the contract.
        unsafe { self.free_in(&mut own, object, pointer) }
    }

    /// In place; `false`: copy it.
    pub fn resize(&self, object: Owned, size: usize) -> bool {
        self.heaps.slots.lock_id(object.heap).is_some_and(|mut own| self.resize_in(&mut own, object, size))
    }

    pub fn find_in(&self, handle: usize, pointer: *mut u8) -> Result<Owned, Misuse> {
        let (id, _) = self.heaps.slots.find(handle)?;
        match self.heap.find(pointer) {
            Found::Owned(object) if object.heap == id => Ok(object),
            Found::Bad(misuse) => Err(misuse),
            _ => Err(Misuse::OtherHeap),
        }
    }

    pub fn trim(&self) {
        for (id, _) in self.heaps.slots.living() {
            if let Some(mut own) = self.heaps.slots.lock_id(id) {
                self.trim_pages(&mut own.pages);
            }
        }
    }
}
