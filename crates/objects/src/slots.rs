//! Tables of what the program names by handle.
//! ```text
//! handle: | slot's address, a multiple of 4096 | generation / 2, cut | kind's bits, below STEP |
//! slot:   | handle, 0 while free | generation, odd in use | next free | shared | lock, its data |
//! ```
//! **Invariants.** *K5* a handle is found exactly from `publish` to `retire`; *K6* two tenants of
//! one slot have different handles (until the generation wraps after 4096 / STEP tenants).
//!
//! **Threads.** Locks: free list → slot.
//! **Unsafe.** Reads slots of the mapping by number.

use core::marker::PhantomData;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed};
use craton_heap::Misuse;
use craton_os::{Guard, Mutex, Rank, mapping};

/// A handle's lower bits are a generation.
pub(crate) const SLOT_ALIGN: usize = 4096;

/// # Safety
/// Zeros are a valid value of both types.
pub(crate) unsafe trait Kind {
    type Locked: Send;
    type Shared: Sync;
    /// Where address space is short a sixteenth, and so on down to `LEAST`.
    const MOST: usize;
    const LEAST: usize = Self::MOST;
    const ALIGN: usize = SLOT_ALIGN;
    const STEP: usize = 1;
    const RANK: Rank = Rank::None;
    const UNKNOWN: Misuse;
    const GONE: Misuse;
}

#[repr(C, align(4096))]
pub(crate) struct Slot<K: Kind> {
    handle: AtomicUsize,
    generation: AtomicU32,
    /// Plus 1; under the free list's lock.
    next_free: AtomicU32,
    pub(crate) shared: K::Shared,
    pub(crate) locked: Mutex<K::Locked>,
}

impl<K: Kind> Slot<K> {
    pub(crate) const SHAPE: [usize; 5] = [
        offset_of!(Self, handle),
        offset_of!(Self, generation),
        offset_of!(Self, shared),
        offset_of!(Self, locked) + Mutex::<K::Locked>::SHAPE[0],
        offset_of!(Self, locked) + Mutex::<K::Locked>::SHAPE[1],
    ];

    /// 0 without a tenant.
    #[inline(always)]
    pub(crate) fn handle(&self) -> usize {
        // ORDERING: pairs with the Release in `Slots::publish`: the tenant is set up.
        self.handle.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn lock<'a>(
        &'a self,
        handle: usize,
        lock: impl FnOnce(&'a Mutex<K::Locked>) -> Guard<'a, K::Locked>,
    ) -> Result<Guard<'a, K::Locked>, Misuse> {
        let locked = lock(&self.locked);
        // Before we had the lock, another thread could reuse the slot.
        if self.handle() == handle { Ok(locked) } else { Err(K::GONE) }
    }
}

pub(crate) struct FreeList(u32);

pub(crate) type Tenant<'a, K> = (u16, &'a Slot<K>, Guard<'a, <K as Kind>::Locked>);

pub(crate) struct Slots<K: Kind> {
    base: AtomicUsize,
    capacity: AtomicUsize,
    used: AtomicUsize,
    free: Mutex<FreeList>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Slots<K> {
    pub(crate) const SHAPE: [usize; 2] = [offset_of!(Self, base), offset_of!(Self, used)];

    pub(crate) const fn new() -> Self {
        Self {
            base: AtomicUsize::new(0),
            capacity: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            free: Mutex::ranked(K::RANK, FreeList(0)),
            kind: PhantomData,
        }
    }

    pub(crate) fn used(&self) -> usize {
        // ORDERING: pairs with the Release in `alloc`: who counts a slot sees the mapping.
        self.used.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, id: u16) -> &Slot<K> {
        debug_assert!(usize::from(id) < self.used());
        let base = self.base.load(Relaxed) as *const Slot<K>;
        // SAFETY: a slot of the permanent mapping; zeros are valid by `Kind`.
        unsafe { &*base.add(id.into()) }
    }

    pub(crate) fn lock_free(&self) -> Guard<'_, FreeList> {
        self.free.lock()
    }

    /// `None`: no memory, or all are used.
    pub(crate) fn alloc(&self, free: &mut FreeList) -> Option<u16> {
        if let Some(id) = free.0.checked_sub(1) {
            free.0 = self.get(id as u16).next_free.load(Relaxed);
            return Some(id as u16);
        }
        if self.base.load(Relaxed) == 0 {
            self.reserve()?;
        }
        let id = self.used.load(Relaxed);
        if id == self.capacity.load(Relaxed) {
            return None;
        }
        // ORDERING: pairs with the Acquire in `used`.
        self.used.store(id + 1, Ordering::Release);
        Some(id as u16)
    }

    fn reserve(&self) -> Option<()> {
        let mut capacity = K::MOST;
        while capacity >= K::LEAST {
            let bytes = capacity * size_of::<Slot<K>>();
            if let Some(at) = mapping::map(bytes, K::ALIGN) {
                mapping::advise_small(at, bytes);
                self.base.store(at, Relaxed);
                self.capacity.store(capacity, Relaxed);
                return Some(());
            }
            capacity /= 16;
        }
        None
    }

    pub(crate) fn publish(&self, id: u16, bits: usize) -> usize {
        let slot = self.get(id);
        let generation = slot.generation.load(Relaxed).wrapping_add(1);
        slot.generation.store(generation, Relaxed);
        let handle = core::ptr::from_ref(slot) as usize + (generation as usize >> 1) * K::STEP % SLOT_ALIGN + bits;
        // ORDERING: pairs with the Acquire in `Slot::handle`.
        slot.handle.store(handle, Ordering::Release);
        handle
    }

    /// From here on no call finds the tenant.
    pub(crate) fn retire(&self, id: u16) {
        let slot = self.get(id);
        slot.handle.store(0, Relaxed);
        slot.generation.fetch_add(1, Relaxed);
    }

    pub(crate) fn free(&self, free: &mut FreeList, id: u16) {
        self.get(id).next_free.store(free.0, Relaxed);
        free.0 = u32::from(id) + 1;
    }

    pub(crate) fn find(&self, handle: usize) -> Result<(u16, &Slot<K>), Misuse> {
        let offset = (handle & !(SLOT_ALIGN - 1)).wrapping_sub(self.base.load(Relaxed));
        if offset >= self.used() * size_of::<Slot<K>>() || !offset.is_multiple_of(size_of::<Slot<K>>()) {
            return Err(K::UNKNOWN);
        }
        let id = (offset / size_of::<Slot<K>>()) as u16;
        let slot = self.get(id);
        if slot.handle() == handle { Ok((id, slot)) } else { Err(K::GONE) }
    }

    pub(crate) fn lock(&self, handle: usize) -> Result<Tenant<'_, K>, Misuse> {
        let (id, slot) = self.find(handle)?;
        Ok((id, slot, slot.lock(handle, Mutex::lock)?))
    }

    pub(crate) fn lock_id(&self, id: u16) -> Option<Guard<'_, K::Locked>> {
        let slot = self.get(id);
        let locked = slot.locked.lock();
        (slot.handle() != 0).then_some(locked)
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = (u16, &Slot<K>)> {
        (0..self.used()).map(|id| (id as u16, self.get(id as u16))).filter(|(_, slot)| slot.handle() != 0)
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.free.lock_for_fork(nested);
        (0..self.used()).for_each(|id| self.get(id as u16).locked.lock_for_fork(nested));
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract; no slot was added while the free list was locked.
        unsafe {
            (0..self.used()).for_each(|id| self.get(id as u16).locked.release_after_fork());
            self.free.release_after_fork();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
