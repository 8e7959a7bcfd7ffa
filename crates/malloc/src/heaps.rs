//! Heaps of the program's own, each destroyed whole.
//!
//! **What.** A heap has its own slabs and spans, over the process's page heap. Its objects are freed one by one, also by the plain
//! `free`, or all at once with it. Some heaps are the library's own: objects with a hint go there ([`crate::hints`]).
//!
//! **State.** A slot for each heap in one reservation, so that a handle is checked before anything behind it is read:
//! ```text
//! handle: | address of the slot (a multiple of 4096) | generation, modulo 4096 |
//! slot:   | generation: odd while the heap lives | next free slot | lock | the heap |
//! ```
//! A slot serves again when its heap is gone; the generation tells old handles from new ones.
//!
//! **Invariants.** H4 a page's mark is `OWNED` exactly while a heap's slab or large object has it; the page's record names heap and class. H5
//! `spare` is what all heaps hold and do not use.
//!
//! **Threads.** A heap's lock is held over each call; any thread may use any heap, and free any object. Order: table → heap →
//! page heap. A fork takes them all.
//!
//! **Failure.** No memory and a limit that is reached are null. A bad handle, or an object of another heap, is a
//! [`Misuse`] that has changed nothing.
//!
//! **Unsafe.** Keeps the heaps in a mapping, in which zeros are heaps that were never used.

pub mod api;
mod chunks;
mod own;
mod pages;
#[cfg(test)]
mod tests;

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::route::{Found, Misuse};
use crate::size_class;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use craton_base::{Bytes, Clock, Floor, PageId, Pages};
use craton_os::{Guard, Mutex, mapping};
use craton_slab::SlabStats;
use own::OwnHeap;
pub use pages::Place;

/// Bytes of a heap's name, at most.
pub const NAME_MAX: usize = 31;
/// Heaps that there may be at a time, where the address space allows it.
const MOST: usize = 1 << 16;
const ALIGN: usize = 4096;
/// Heaps of the library's own.
pub(crate) const BUILT_IN: usize = 4;

/// What an object of a heap is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owned {
    pub(crate) heap: u16,
    /// Its class, or `LARGE`.
    pub(crate) class: usize,
    /// The page that it begins on.
    pub(crate) first: PageId,
    /// Bytes that may be used.
    pub(crate) bytes: usize,
}

/// How a heap is made.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// At most [`NAME_MAX`] printable ASCII bytes without `"` and `\`.
    pub name: &'a [u8],
    /// Bytes that its slabs and large objects may take, rounded up to pages of 8 KiB; 0 for no limit.
    pub limit: usize,
    /// Where its memory lies.
    pub place: Place,
}

/// Why there is no new heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No memory, or too many heaps.
    NoMemory,
    /// The name is too long, or has other bytes than allowed.
    Name,
}

craton_tables::count_struct! { heap,
    /// Counts of one heap. The layout is that of `struct craton_heap_stats` behind its first field.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(C)]
    pub struct OwnStats {
        /// Its name, ended by a 0.
        pub name: [u8; NAME_MAX + 1],
    }
}

#[repr(C, align(4096))]
struct Slot {
    /// Odd while the heap lives.
    generation: AtomicU32,
    /// The next free slot, plus 1; under the table's lock.
    next_free: AtomicU32,
    heap: Mutex<OwnHeap>,
}

/// The table's own state.
struct Table {
    /// The first free slot, plus 1.
    free: u32,
}

/// All heaps of their own over one heap.
pub struct Heaps {
    /// Address of slot 0; 0 before the first heap.
    base: AtomicUsize,
    capacity: AtomicUsize,
    /// Slots that have ever been used: the first so many.
    used: AtomicUsize,
    spare: AtomicUsize,
    built_in: [AtomicU32; BUILT_IN],
    table: Mutex<Table>,
}

/// The number of a living heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeapId(u16);

impl Heaps {
    /// Offsets and sizes in bytes, for those who read the memory of another process.
    pub(crate) const SHAPE: [(&'static str, usize); 6] = [
        ("own.slots", offset_of!(Self, base)),
        ("own.used", offset_of!(Self, used)),
        ("own.slot.bytes", size_of::<Slot>()),
        ("own.slot.generation", offset_of!(Slot, generation)),
        ("own.slot.lock", offset_of!(Slot, heap) + Mutex::<OwnHeap>::SHAPE[0]),
        ("own.slot.name", offset_of!(Slot, heap) + Mutex::<OwnHeap>::SHAPE[1] + OwnHeap::NAME),
    ];

    /// Without heaps.
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new table.
    pub(crate) const NONE: Self = Self {
        base: AtomicUsize::new(0),
        capacity: AtomicUsize::new(0),
        used: AtomicUsize::new(0),
        spare: AtomicUsize::new(0),
        built_in: [const { AtomicU32::new(0) }; BUILT_IN],
        table: Mutex::new(Table { free: 0 }),
    };

    /// Pages that heaps hold and do not use.
    pub(crate) fn spare(&self) -> Pages {
        Pages(self.spare.load(Ordering::Relaxed) as u32)
    }

    pub(crate) fn note_spare(&self, more: Pages, less: Pages) {
        self.spare.fetch_add((more.0 as usize).wrapping_sub(less.0 as usize), Ordering::Relaxed);
    }

    fn slot(&self, id: u16) -> &Slot {
        debug_assert!(usize::from(id) < self.used.load(Ordering::Relaxed));
        let base = self.base.load(Ordering::Relaxed) as *const Slot;
        // SAFETY: numbers are given to slots of the mapping only, which stays; zeros are a slot that was never used.
        unsafe { &*base.add(id.into()) }
    }

    /// Makes a heap; returns its handle.
    pub(crate) fn create(&self, options: Options<'_>) -> Result<usize, Refused> {
        let allowed = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\');
        if options.name.len() > NAME_MAX || !options.name.iter().all(allowed) {
            return Err(Refused::Name);
        }
        let limit = Bytes(options.limit).pages_up().unwrap_or(Pages(u32::MAX));
        let mut table = self.table.lock();
        let id = self.take_slot(&mut table).ok_or(Refused::NoMemory)?;
        let slot = self.slot(id);
        slot.heap.lock().begin(id, options.name, options.place, limit);
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        // ORDERING: Release pairs with the Acquire in `is_alive`: whoever sees the heap alive sees it set up.
        slot.generation.store(generation, Ordering::Release);
        Ok(handle(slot, generation))
    }

    fn take_slot(&self, table: &mut Table) -> Option<u16> {
        if let Some(id) = table.free.checked_sub(1) {
            table.free = self.slot(id as u16).next_free.load(Ordering::Relaxed);
            return Some(id as u16);
        }
        if self.base.load(Ordering::Relaxed) == 0 {
            self.reserve()?;
        }
        let id = self.used.load(Ordering::Relaxed);
        if id == self.capacity.load(Ordering::Relaxed) {
            return None;
        }
        // ORDERING: Release pairs with the Acquire in `slot_of`: whoever counts the slot sees the mapping.
        self.used.store(id + 1, Ordering::Release);
        Some(id as u16)
    }

    /// Reserves address space for the slots, for fewer where there is little.
    fn reserve(&self) -> Option<()> {
        let mut capacity = MOST;
        while capacity >= 16 {
            let bytes = capacity * size_of::<Slot>();
            if let Some(at) = mapping::map(bytes, ALIGN) {
                // A heap takes the pages that it touches, and not a hugepage.
                mapping::advise_small(at, bytes);
                self.base.store(at, Ordering::Relaxed);
                self.capacity.store(capacity, Ordering::Relaxed);
                return Some(());
            }
            capacity /= 16;
        }
        None
    }

    /// The slot that a handle points at, whether its heap lives or not.
    fn slot_of(&self, handle: usize) -> Result<u16, Misuse> {
        // ORDERING: Acquire pairs with the Release in `take_slot`.
        let used = self.used.load(Ordering::Acquire);
        let offset = (handle & !(ALIGN - 1)).wrapping_sub(self.base.load(Ordering::Relaxed));
        if offset >= used * size_of::<Slot>() || !offset.is_multiple_of(size_of::<Slot>()) {
            return Err(Misuse::NoHeap);
        }
        Ok((offset / size_of::<Slot>()) as u16)
    }

    /// Whether the heap in a slot is the one that a handle stands for.
    fn is_alive(&self, id: u16, handle: usize) -> Result<(), Misuse> {
        // ORDERING: Acquire pairs with the Release in `create`.
        let generation = self.slot(id).generation.load(Ordering::Acquire);
        if generation.is_multiple_of(2) || self::handle(self.slot(id), generation) != handle {
            return Err(Misuse::HeapDestroyed);
        }
        Ok(())
    }

    /// The heap that a handle stands for.
    pub(crate) fn resolve(&self, handle: usize) -> Result<HeapId, Misuse> {
        let id = self.slot_of(handle)?;
        self.is_alive(id, handle)?;
        Ok(HeapId(id))
    }

    fn lock_id(&self, id: u16) -> Option<Guard<'_, OwnHeap>> {
        let slot = self.slot(id);
        let heap = slot.heap.lock();
        // ORDERING: Acquire pairs with the Release in `create`.
        (!slot.generation.load(Ordering::Acquire).is_multiple_of(2)).then_some(heap)
    }

    fn lock(&self, handle: usize) -> Result<Guard<'_, OwnHeap>, Misuse> {
        let id = self.slot_of(handle)?;
        let heap = self.slot(id).heap.lock();
        // Only now: until the lock was ours the heap could be destroyed, and the slot used again.
        self.is_alive(id, handle)?;
        Ok(heap)
    }

    /// One of the library's own heaps, made when it is first asked for; `None` without memory.
    pub(crate) fn built_in(&self, which: usize, name: &[u8], place: Place) -> Option<usize> {
        let made = || self.built_in[which].load(Ordering::Relaxed).checked_sub(1);
        let id = match made() {
            Some(id) => id,
            None => {
                let handle = self.create(Options { name, limit: 0, place }).ok()?;
                let HeapId(id) = self.resolve(handle).ok()?;
                let first =
                    self.built_in[which].compare_exchange(0, u32::from(id) + 1, Ordering::Relaxed, Ordering::Relaxed);
                match first {
                    Ok(_) => id.into(),
                    Err(other) => {
                        // Another thread was faster, and this heap is empty still.
                        self.retire(id);
                        other - 1
                    }
                }
            }
        };
        // ORDERING: Acquire pairs with the Release in `take_slot`: the slot is known here.
        self.used.load(Ordering::Acquire);
        let slot = self.slot(id as u16);
        Some(handle(slot, slot.generation.load(Ordering::Relaxed)))
    }

    /// Ends a heap that has nothing any more.
    fn retire(&self, id: u16) {
        let slot = self.slot(id);
        let mut table = self.table.lock();
        slot.generation.fetch_add(1, Ordering::Relaxed);
        slot.next_free.store(table.free, Ordering::Relaxed);
        table.free = u32::from(id) + 1;
    }

    /// Destroys a heap, with all its objects.
    pub(crate) fn destroy<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
    ) -> Result<(), Misuse> {
        let HeapId(id) = self.resolve(handle)?;
        if self.built_in.iter().any(|b| b.load(Ordering::Relaxed) == u32::from(id) + 1) {
            return Err(Misuse::HeapStays);
        }
        // The table first, which orders two threads that destroy one heap.
        let mut table = self.table.lock();
        let mut heap = self.lock(handle)?;
        heap.destroy(under);
        let slot = self.slot(id);
        slot.generation.fetch_add(1, Ordering::Relaxed);
        slot.next_free.store(table.free, Ordering::Relaxed);
        table.free = u32::from(id) + 1;
        Ok(())
    }

    /// An object of a heap; null when there is no memory, the limit is reached, or the alignment is above 2 MiB.
    pub(crate) fn alloc<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
        size: usize,
        align: usize,
        zero: bool,
    ) -> Result<*mut u8, Misuse> {
        Ok(self.lock(handle)?.alloc(under, size, align, zero))
    }

    /// An object of the heap that another one is of; null when there is no memory.
    pub(crate) fn alloc_beside<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        object: Owned,
        size: usize,
    ) -> *mut u8 {
        self.lock_id(object.heap).map_or(core::ptr::null_mut(), |mut h| h.alloc(under, size, 1, false))
    }

    /// Takes an object back.
    ///
    /// # Safety
    /// `object` is what lies at `pointer`; the caller gives it up.
    pub(crate) unsafe fn free<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        object: Owned,
        pointer: *mut u8,
    ) -> Result<(), Misuse> {
        let mut heap = self.lock_id(object.heap).ok_or(Misuse::Unallocated)?;
        // SAFETY: by the contract.
        unsafe { heap.free(under, object, pointer) }
    }

    /// Changes an object's size where it stands; `false` when it must be copied.
    pub(crate) fn resize<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        object: Owned,
        size: usize,
    ) -> bool {
        self.lock_id(object.heap).is_some_and(|mut h| h.resize(under, object, size))
    }

    /// What is at a pointer, which must be an object of the heap.
    pub(crate) fn find_in<F: Floor, C: Clock, H: Hooks>(
        &self,
        under: &Heap<F, C, H>,
        handle: usize,
        pointer: *mut u8,
    ) -> Result<Owned, Misuse> {
        let HeapId(id) = self.resolve(handle)?;
        match under.find(pointer) {
            Found::Owned(object) if object.heap == id => Ok(object),
            Found::Bad(misuse) => Err(misuse),
            _ => Err(Misuse::OtherHeap),
        }
    }

    /// Counts of a heap.
    pub(crate) fn stats(&self, handle: usize) -> Result<OwnStats, Misuse> {
        Ok(self.lock(handle)?.stats())
    }

    /// Counts of each living heap, by number.
    pub(crate) fn each(&self, mut tell: impl FnMut(OwnStats)) {
        // ORDERING: Acquire pairs with the Release in `take_slot`.
        for id in 0..self.used.load(Ordering::Acquire) {
            if let Some(stats) = self.lock_id(id as u16).map(|h| h.stats()) {
                tell(stats);
            }
        }
    }

    /// Counts of one class of heap `id`, if it lives.
    pub(crate) fn class_stats(&self, id: u16, class: usize) -> Option<SlabStats> {
        self.lock_id(id).map(|h| h.class_stats(class))
    }

    /// Gives back what heaps without objects hold.
    pub(crate) fn trim<F: Floor, C: Clock, H: Hooks>(&self, under: &Heap<F, C, H>) {
        // ORDERING: Acquire pairs with the Release in `take_slot`.
        for id in 0..self.used.load(Ordering::Acquire) {
            if let Some(mut heap) = self.lock_id(id as u16) {
                heap.pages.trim(under);
            }
        }
    }

    /// Takes every lock, for a fork.
    pub(crate) fn hold_for_fork(&self, nested: bool) {
        self.table.hold_for_fork(nested);
        (0..self.used.load(Ordering::Relaxed)).for_each(|id| self.slot(id as u16).heap.hold_for_fork(nested));
    }

    /// Gives every lock up after a fork.
    ///
    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        for id in 0..self.used.load(Ordering::Relaxed) {
            // SAFETY: by the contract; no slot was added while the table's lock was held.
            unsafe { self.slot(id as u16).heap.release_after_fork() };
        }
        // SAFETY: by the contract.
        unsafe { self.table.release_after_fork() };
    }
}

fn handle(slot: &Slot, generation: u32) -> usize {
    core::ptr::from_ref(slot) as usize + (generation >> 1) as usize % ALIGN
}

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Whether a page is that of heap `heap` and class `class`.
    pub(crate) fn is_of(&self, page: PageId, heap: u16, class: usize) -> bool {
        self.mark(page) == size_class::OWNED && self.record(page).heap() == (heap, class as u8)
    }
}
