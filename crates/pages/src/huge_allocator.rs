//! The hugepage allocator: whole hugepages without memory, unused or unbacked.
//!
//! **From.** TEMERAIRE §4.2. Grows from the region's front in large steps: one kernel mapping.

use crate::ranges::Ranges;
use crate::tracker::{Place, Trackers};
use core::marker::PhantomData;
use craton_base::{Floor, Geometry, HugePageId, HugePages, NoMemory};

/// The least step of address space, 32 MiB.
const GROW_MIN: HugePages = HugePages(16);
const GROW_MAX_PART: u32 = 64;
/// From 8 MiB on the rest averages 1/8.
pub(crate) const LONG: HugePages = HugePages(4);

pub(crate) struct HugeAllocator<G> {
    free: Ranges<{ Place::Unbacked as u8 }>,
    granted: HugePages,
    capacity: HugePages,
    geometry: PhantomData<G>,
}

impl<G: Geometry> HugeAllocator<G> {
    pub(crate) const fn new(capacity: HugePages) -> Self {
        Self { free: Ranges::EMPTY, granted: HugePages(0), capacity, geometry: PhantomData }
    }

    pub(crate) fn granted(&self) -> HugePages {
        self.granted
    }

    pub(crate) fn capacity(&self) -> HugePages {
        self.capacity
    }

    pub(crate) fn free(&self) -> &Ranges<{ Place::Unbacked as u8 }> {
        &self.free
    }

    /// Long spans avoid the first `front` hugepages, on small pages.
    pub(crate) fn alloc(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        len: HugePages,
        align: HugePages,
        front: u32,
    ) -> Result<HugePageId, NoMemory> {
        if len < LONG
            && let Some(first) = self.free.alloc(trackers, len, align, 0..front)
        {
            return Ok(first);
        }
        let places: &[u32] = if len >= LONG && front > 0 { &[front, 0] } else { &[0] };
        for &least in places {
            if let Some(first) = self.free.alloc(trackers, len, align, least..u32::MAX) {
                return Ok(first);
            }
            let free = self.free.run_at_end(trackers);
            let start = (self.granted.0 - free.0).max(least).next_multiple_of(align.0);
            let Some(end) = start.checked_add(len.0) else { continue };
            if self.grow_to(trackers, floor, HugePages(end)).is_ok() {
                return Ok(self.free.alloc(trackers, len, align, least..u32::MAX).expect("just granted"));
            }
        }
        Err(NoMemory)
    }

    pub(crate) fn alloc_at(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.free.alloc_at(trackers, first, len);
    }

    /// Constant time.
    pub(crate) fn alloc_end(&mut self, trackers: &mut Trackers<G>, end: HugePageId, len: HugePages) {
        self.free.alloc_end(trackers, end, len);
    }

    pub(crate) fn put(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.free.insert(trackers, first, len);
    }

    /// Large steps are rare.
    #[cold]
    pub(crate) fn grow_to(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        need: HugePages,
    ) -> Result<(), NoMemory> {
        if need > self.capacity {
            return Err(NoMemory);
        }
        let step = (self.granted.0 / 4).min(self.capacity.0 / GROW_MAX_PART).max(GROW_MIN.0);
        let generous = HugePages(need.0.max(self.granted.0 + step).min(self.capacity.0));
        let granted = match floor.reserve(generous) {
            Ok(()) => generous,
            Err(NoMemory) => {
                floor.reserve(need)?;
                need
            }
        };
        let old = core::mem::replace(&mut self.granted, granted);
        self.free.set_end(granted);
        self.free.insert(trackers, HugePageId(old.0), HugePages(granted.0 - old.0));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
