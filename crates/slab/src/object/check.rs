//! **Unsafe.** Reads records.

use super::cache::ObjectSlabs;
use super::record::{InRecords, Slab};
use super::table::SlabTable;
use crate::check::Broken;

impl ObjectSlabs {
    /// S2 to S4, O1 to O4.
    pub fn check(&self) -> Result<(), Broken> {
        let full = self.table.iter().filter(|slab| u32::from(slab.used()) == self.layout.capacity);
        let checked = |slab| self.check_slab(slab).map(|()| (slab.used(), slab.used()));
        self.slabs.check(&InRecords, full, checked, |slab| slab.address() as usize)?;
        let entries: u32 = self.table.iter().map(|slab| SlabTable::entries(&self.layout, slab)).sum();
        let slabs = self.slabs.stats.slabs;
        if entries != self.table.count() || self.table.iter().count() != slabs as usize {
            return Err(Broken::of_none("O2"));
        }
        let apart = if self.layout.is_apart() { slabs + self.detached } else { 0 };
        if apart == self.records.live() { Ok(()) } else { Err(Broken::of_none("O4")) }
    }

    fn check_slab(&self, slab: Slab) -> Result<(), &'static str> {
        let (layout, first) = (&self.layout, slab.address() as usize);
        // SAFETY: this cache's slab.
        if !unsafe { slab.is_sound(layout) } {
            return Err("O1");
        }
        let is_found = |at: usize| self.table.find(layout, at) == Some(slab);
        // Of two overlapping slabs, one's first byte would be in both.
        if !is_found(first) || !is_found(first + layout.bytes() - 1) {
            return Err("O2");
        }
        let colour = slab.start() as usize - first;
        let end = if layout.is_apart() { layout.bytes() } else { layout.record_at as usize };
        let is_aligned = (slab.start() as usize).is_multiple_of(layout.align());
        let is_colour = colour.is_multiple_of(layout.colour_step as usize) && colour + layout.extent <= end;
        if is_aligned && is_colour { Ok(()) } else { Err("O3") }
    }
}
