//! A floor with real bytes, for layers that touch objects.
//!
//! **What.** One region, aligned to a hugepage; new and unbacked parts read as zeros. Contracts,
//! counters and refusals are those of its [`SimFloor`]. The system's allocator provides the memory,
//! so that tests run under Miri. **Not here.** Touches are unseen: [`Floor::residency`] knows only
//! of `back` and what the test reports to [`RealFloor::sim`].
//! **Unsafe.** Allocates the region, and zeroes ranges of it that the caller gave up.

use crate::fault::FaultPlan;
use crate::floor::{SimFloor, ThpMode};
use craton_base::{Advice, Ask, CollapseError, Floor, HUGEPAGE_SIZE, HugePages, NoMemory, PageRange, Residency};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

/// Real zeroed memory, aligned to 2 MiB; freed when dropped.
pub struct RealMemory {
    /// The allocation: a hugepage longer, so that an aligned region fits.
    block: NonNull<u8>,
    layout: Layout,
    base: NonNull<u8>,
    capacity: HugePages,
}

// SAFETY: the memory belongs to no thread; only `zero` accesses it, whose contract excludes races.
unsafe impl Send for RealMemory {}
// SAFETY: as above: `&RealMemory` gives an address and a size.
unsafe impl Sync for RealMemory {}

impl RealMemory {
    /// `capacity` (≥ 1) hugepages, backed as touched if the system's allocator works so.
    pub fn new(capacity: HugePages) -> Self {
        assert!(capacity.0 > 0, "RealMemory::new: a region of 0 hugepages has no address");
        // Aligned by hand: for an alignment of 2 MiB the allocator would write the zeros itself.
        let layout =
            Layout::from_size_align(capacity.bytes().0 + HUGEPAGE_SIZE, 16).expect("a region below 2^63 bytes");
        // SAFETY: the layout's size is not 0.
        let block = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        let skip = block.as_ptr().align_offset(HUGEPAGE_SIZE);
        assert!(skip < HUGEPAGE_SIZE, "no aligned address in the region");
        // SAFETY: `skip` is below a hugepage, which the allocation has on top of `capacity`.
        let base = unsafe { block.add(skip) };
        Self { block, layout, base, capacity }
    }

    /// Page 0, valid while this value lives. Users hold no reference to bytes being unbacked.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub fn capacity(&self) -> HugePages {
        self.capacity
    }

    /// # Safety
    /// `range` lies inside the region, and is not used meanwhile.
    unsafe fn zero(&self, range: PageRange) {
        // SAFETY: inside the region by the contract, and unused.
        unsafe { self.base.add(range.first.offset().0).write_bytes(0, range.len.bytes().0) }
    }
}

impl Drop for RealMemory {
    fn drop(&mut self) {
        // SAFETY: `block` came from the allocator with this layout and is freed once.
        unsafe { dealloc(self.block.as_ptr(), self.layout) }
    }
}

/// A floor over [`RealMemory`]. Clones are handles to the same region.
#[derive(Clone)]
pub struct RealFloor {
    memory: Arc<RealMemory>,
    sim: SimFloor,
}

impl RealFloor {
    /// A floor over new memory of `capacity` hugepages, none granted yet.
    pub fn new(capacity: HugePages) -> Self {
        Self::with_faults(capacity, FaultPlan::default())
    }

    /// As [`Self::new`]; `faults` refuses calls.
    pub fn with_faults(capacity: HugePages, faults: FaultPlan) -> Self {
        let sim = SimFloor::with_faults(capacity, ThpMode::Never, faults);
        Self { memory: Arc::new(RealMemory::new(capacity)), sim }
    }

    /// The address of page 0; see [`RealMemory::base`].
    pub fn base(&self) -> *mut u8 {
        self.memory.base()
    }

    /// The memory, to be kept alive apart from the floor.
    pub fn memory(&self) -> &Arc<RealMemory> {
        &self.memory
    }

    /// The state beside the bytes: counters, the grant, what was unbacked.
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
        // SAFETY: the simulated floor asserted that the range was granted, so it lies in the
        // region. The caller gives its contents up, and `base` forbids references to it.
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
