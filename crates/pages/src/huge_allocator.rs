//! Whole hugepages without memory: address space never used, or whose memory went back.
//!
//! **From.** TEMERAIRE §4.2. [`crate::ranges`] keeps the free ranges; here is where new ones come
//! from.
//!
//! **State.** The floor grants address space in large steps from the region's front on, so that it
//! stays one mapping of the system's however large it grows.
//!
//! **Failure.** A refused grant changes nothing.

use crate::ranges::Ranges;
use crate::tracker::{Place, Trackers};
use core::marker::PhantomData;
use craton_base::{Floor, Geometry, HugePageId, HugePages, NoMemory};

/// Address space is made usable in steps of at least 32 MiB.
const GROW_MIN: HugePages = HugePages(16);
/// Spans of 4 hugepages, 8 MiB, are huge in a small heap too: the last one's rest is an
/// eighth on average.
pub(crate) const LONG: HugePages = HugePages(4);

/// Free hugepages without memory, and the grant that they come from.
pub(crate) struct HugeAllocator<G> {
    free: Ranges<{ Place::Unbacked as u8 }>,
    granted: HugePages,
    capacity: HugePages,
    geometry: PhantomData<G>,
}

impl<G: Geometry> HugeAllocator<G> {
    /// An allocator of at most `capacity` hugepages, none granted yet.
    pub(crate) const fn new(capacity: HugePages) -> Self {
        Self { free: Ranges::EMPTY, granted: HugePages(0), capacity, geometry: PhantomData }
    }

    pub(crate) fn granted(&self) -> HugePages {
        self.granted
    }

    pub(crate) fn capacity(&self) -> HugePages {
        self.capacity
    }

    /// The free ranges.
    pub(crate) fn free(&self) -> &Ranges<{ Place::Unbacked as u8 }> {
        &self.free
    }

    /// Takes `len` hugepages whose first is a multiple of `align`. Hugepages are not asked for in
    /// the `front` first ones of the region: long spans leave those alone, and short ones go there
    /// first.
    pub(crate) fn take(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        len: HugePages,
        align: HugePages,
        front: u32,
    ) -> Result<HugePageId, NoMemory> {
        if len < LONG
            && let Some(first) = self.free.take(trackers, len, align, 0..front)
        {
            return Ok(first);
        }
        let places: &[u32] = if len >= LONG && front > 0 { &[front, 0] } else { &[0] };
        for &least in places {
            if let Some(first) = self.free.take(trackers, len, align, least..u32::MAX) {
                return Ok(first);
            }
            // The free hugepages at the end of the region count.
            let free = self.free.run_at_end(trackers);
            let start = (self.granted.0 - free.0).max(least).next_multiple_of(align.0);
            let Some(end) = start.checked_add(len.0) else { continue };
            if self.grow_to(trackers, floor, HugePages(end)).is_ok() {
                return Ok(self.free.take(trackers, len, align, least..u32::MAX).expect("just granted"));
            }
        }
        Err(NoMemory)
    }

    /// Takes exactly `first..first + len`, free ones of one range.
    pub(crate) fn take_at(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.free.take_at(trackers, first, len);
    }

    /// Takes the last `len` hugepages of the range that ends before `end`; constant time.
    pub(crate) fn take_end(&mut self, trackers: &mut Trackers<G>, end: HugePageId, len: HugePages) {
        self.free.take_end(trackers, end, len);
    }

    /// Takes hugepages back that have no memory.
    pub(crate) fn put(&mut self, trackers: &mut Trackers<G>, first: HugePageId, len: HugePages) {
        self.free.insert(trackers, first, len);
    }

    /// Makes at least `need` hugepages usable, and more if that is not refused: large steps are
    /// rare steps.
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
        let step = (self.granted.0 / 4).max(GROW_MIN.0);
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
