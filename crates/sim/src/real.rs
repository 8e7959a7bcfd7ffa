//! A floor with real bytes, for layers that touch objects.
//!
//! Contracts, counters and refusals are its [`SimFloor`]'s; the memory is the allocator's, for
//! Miri. **Not here.** Touches are unseen: [`Floor::residency`] knows `back` and what the test
//! reports to [`RealFloor::sim`].
//! **Unsafe.** Allocates the region; zeroes ranges that the caller gave up.

use crate::fault::FaultPlan;
use crate::floor::{SimFloor, ThpMode};
use craton_base::{Advice, Ask, CollapseError, Floor, HUGEPAGE_SIZE, HugePages, NoMemory, PageRange, Residency};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

pub struct RealMemory {
    /// A hugepage longer, so that an aligned region fits.
    block: NonNull<u8>,
    layout: Layout,
    base: NonNull<u8>,
    capacity: HugePages,
}

// SAFETY: only `zero` accesses the memory; its contract excludes races.
unsafe impl Send for RealMemory {}
// SAFETY: as above; `&RealMemory` gives an address and a size.
unsafe impl Sync for RealMemory {}

impl RealMemory {
    /// `capacity` ≥ 1.
    pub fn new(capacity: HugePages) -> Self {
        assert!(capacity.0 > 0, "RealMemory::new: a region of 0 hugepages has no address");
        // Aligned to 2 MiB the allocator would write the zeros.
        let layout =
            Layout::from_size_align(capacity.bytes().0 + HUGEPAGE_SIZE, 16).expect("a region below 2^63 bytes");
        // SAFETY: the layout is not empty.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        let skip = block.as_ptr().align_offset(HUGEPAGE_SIZE);
        assert!(skip < HUGEPAGE_SIZE, "no aligned address in the region");
        // SAFETY: the allocation has a hugepage more than `capacity`; `skip` is less.
        let base = unsafe { block.add(skip) };
        Self { block, layout, base, capacity }
    }

    /// Page 0, valid while `self` lives. Users hold no reference to bytes being unbacked.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub fn capacity(&self) -> HugePages {
        self.capacity
    }

    /// # Safety
    /// `range` lies inside the region, and is not used meanwhile.
    unsafe fn zero(&self, range: PageRange) {
        // SAFETY: by the contract.
        unsafe { self.base.add(range.first.offset().0).write_bytes(0, range.len.bytes().0) }
    }
}

impl Drop for RealMemory {
    fn drop(&mut self) {
        // SAFETY: `block` came from the allocator with this layout; freed once.
        unsafe { dealloc(self.block.as_ptr(), self.layout) }
    }
}

#[derive(Clone)]
pub struct RealFloor {
    memory: Arc<RealMemory>,
    sim: SimFloor,
}

impl RealFloor {
    pub fn new(capacity: HugePages) -> Self {
        Self::with_faults(capacity, FaultPlan::default())
    }

    pub fn with_faults(capacity: HugePages, faults: FaultPlan) -> Self {
        let sim = SimFloor::with_faults(capacity, ThpMode::Never, faults);
        Self { memory: Arc::new(RealMemory::new(capacity)), sim }
    }

    /// See [`RealMemory::base`].
    pub fn base(&self) -> *mut u8 {
        self.memory.base()
    }

    pub fn memory(&self) -> &Arc<RealMemory> {
        &self.memory
    }

    pub fn sim(&self) -> &SimFloor {
        &self.sim
    }
}

impl Floor for RealFloor {
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory> {
        self.sim.reserve(total)
    }
    fn back(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.sim.back(range)
    }
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory> {
        self.sim.unback(range)?;
        // SAFETY: granted, as the simulated floor asserted. The caller gives the contents up;
        // `base` forbids references.
        unsafe { self.memory.zero(range) };
        Ok(())
    }
    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError> {
        self.sim.collapse(range)
    }
    fn advise(&mut self, range: PageRange, advice: Advice) -> bool {
        self.sim.advise(range, advice)
    }
    fn residency(&self, range: PageRange, ask: Ask) -> Residency {
        self.sim.residency(range, ask)
    }
}

#[cfg(test)]
mod tests;
