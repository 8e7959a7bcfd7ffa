//! Walks every invariant of a cache's slabs.
//!
//! **Unsafe.** Looks at records and follows links.

use super::slab::Slab;
use super::slabs::{COMPLETE, CURRENT, LISTS, ObjectSlabs};
use super::table::SlabTable;

/// An invariant that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its id, as the module's theory names it.
    pub invariant: &'static str,
    /// Address of the slab where that was seen; 0 for what is of no single slab.
    pub slab: usize,
}

impl ObjectSlabs {
    /// Walks O1 to O6.
    pub fn check(&self) -> Result<(), Broken> {
        let (mut slabs, mut out, mut entries) = (0, 0, 0);
        for slab in self.all() {
            let broken = |invariant| Broken { invariant, slab: slab.address() as usize };
            // SAFETY: the slab is ours.
            unsafe { slab.check(&self.layout) }.map_err(broken)?;
            self.check_place(slab).map_err(broken)?;
            slabs += 1;
            out += u64::from(slab.used());
            entries += SlabTable::entries(&self.layout, slab);
        }
        let broken = |invariant| Err(Broken { invariant, slab: 0 });
        for list in 0..LISTS {
            let of = &self.lists[list];
            if of.iter().any(|slab| slab.list() as usize != list || self.list_of(slab.used()) != slab.list())
                || of.iter().last() != of.last()
                || (self.filled >> list) & 1 != u32::from(of.first().is_some())
            {
                return broken("O3");
            }
        }
        if self.current.is_some_and(|slab| slab.list() != CURRENT || slab.used() == self.layout.capacity) {
            return broken("O3");
        }
        let complete = self.lists[COMPLETE as usize].iter().count();
        if (slabs, out, complete) != (self.slabs, self.in_use(), self.complete.count() as usize) {
            return broken("O4");
        }
        if entries != self.table.count() {
            return broken("O5");
        }
        let apart = if self.layout.is_apart() { self.slabs + self.detached } else { 0 };
        if apart != self.records.live() { broken("O4") } else { Ok(()) }
    }

    /// What holds for a slab and its neighbours.
    fn check_place(&self, slab: Slab) -> Result<(), &'static str> {
        let (layout, first) = (&self.layout, slab.address() as usize);
        let is_found = |at: usize| self.table.find(layout, at) == Some(slab);
        // Two slabs that overlapped would both cover the first byte of one of them.
        if !is_found(first) || !is_found(first + layout.bytes() - 1) {
            return Err("O5");
        }
        let colour = slab.start() as usize - first;
        let end = if layout.is_apart() { layout.bytes() } else { layout.record_at as usize };
        let is_aligned = (slab.start() as usize).is_multiple_of(layout.align());
        if !is_aligned || !colour.is_multiple_of(layout.colour_step as usize) || colour + layout.extent > end {
            return Err("O6");
        }
        Ok(())
    }
}
