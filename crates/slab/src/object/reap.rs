//! Frees memory on request only (Bonwick94 §3.4).
//!
//! **Unsafe.** Returns pages to the supplier.

use super::cache::{ObjectSlabs, records_of};
use super::layout::ObjectLayout;
use super::record::{InRecords, Slab};
use super::supply::PageSupplier;

/// Live objects, which prevent a cache's destruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StillOut(pub u64);

#[derive(Debug)]
#[must_use = "its memory is lost unless it is given to `ObjectSlabs::release`"]
pub struct Detached(Slab, ObjectLayout);

// SAFETY: it owns its slab.
unsafe impl Send for Detached {}

impl Detached {
    /// # Safety
    /// Call it once, so that no object is destroyed twice.
    pub unsafe fn for_each_constructed(&self, destroy: impl FnMut(*mut u8)) {
        // SAFETY: only `self` refers to the slab.
        unsafe { self.0.for_each(&self.1, false, destroy) }
    }
}

impl ObjectSlabs {
    pub fn turn(&mut self) {
        self.slabs.kept.turn();
    }

    pub fn idle(&self) -> u32 {
        self.slabs.kept.idle()
    }

    /// Destroy its objects without the lock; then [`ObjectSlabs::release`] it.
    pub fn detach(&mut self) -> Option<Detached> {
        let slab = self.slabs.complete()?;
        self.slabs.end(slab, 0, &InRecords);
        self.table.remove(&self.layout, slab);
        self.detached += 1;
        Some(Detached(slab, self.layout))
    }

    /// Returns bytes, also of other unneeded memory.
    /// # Safety
    /// As [`ObjectSlabs::alloc`]; the slab comes from [`ObjectSlabs::detach`] of this cache.
    pub unsafe fn release(&mut self, slab: Detached, supplier: &mut impl PageSupplier) -> usize {
        let (slab, layout) = (slab.0, self.layout);
        let (before, first) = (self.bytes(), slab.address());
        // SAFETY: no object or list refers to pages and record.
        unsafe {
            if layout.is_apart() {
                self.records.free(records_of(&layout), slab.0.as_ptr().cast(), supplier);
            }
            supplier.put(first, layout.bytes());
        }
        self.detached -= 1;
        self.table.shrink(&layout, supplier);
        before - self.bytes()
    }

    /// Leaves `keep` complete slabs; returns bytes.
    /// # Safety
    /// As [`ObjectSlabs::alloc`]; `destroy` does not use the cache.
    pub unsafe fn reap(
        &mut self,
        keep: u32,
        supplier: &mut impl PageSupplier,
        mut destroy: impl FnMut(*mut u8),
    ) -> usize {
        let mut went = 0;
        while self.complete() > keep {
            let Some(slab) = self.detach() else { break };
            // SAFETY: detached just now.
            went += unsafe {
                slab.for_each_constructed(&mut destroy);
                self.release(slab, supplier)
            };
        }
        went
    }

    /// Frees all but detached slabs. Refuses, unchanged, while objects are out.
    /// # Safety
    /// As [`ObjectSlabs::reap`].
    pub unsafe fn destroy(
        &mut self,
        supplier: &mut impl PageSupplier,
        destroy: impl FnMut(*mut u8),
    ) -> Result<usize, StillOut> {
        if self.in_use() > 0 {
            return Err(StillOut(self.in_use()));
        }
        // SAFETY: by the contract.
        let went = unsafe { self.reap(0, supplier, destroy) };
        debug_assert!(self.detached > 0 || self.bytes() == 0);
        Ok(went)
    }
}
