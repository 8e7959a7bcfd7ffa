//! Seams beside the region: [`Mappings`] for huge objects and the heap's tables, [`Machine`].

use crate::Floor;

/// Ranges are whole machine pages.
pub trait Mappings {
    /// Zeroed; `align` is a power of two. `None`: refused.
    fn map(&self, bytes: usize, align: usize) -> Option<usize>;

    /// Zeroed hugepages, to be used in part. `None`: refused, or addresses are scarce.
    fn reserve(&self, bytes: usize) -> Option<usize>;

    /// Then reads as zeros on small pages.
    fn discard(&self, at: usize, bytes: usize);

    /// Part or all of a mapping.
    fn unmap(&self, at: usize, bytes: usize);

    /// *Contents:* survive.
    fn advise_huge(&self, at: usize, bytes: usize);

    /// The system's unasked hugepages. *Contents:* survive.
    fn refuse_huge(&self, at: usize, bytes: usize, refuse: bool);

    /// A whole mapping. *Contents:* survive. *Refused:* unchanged.
    fn grow(&self, at: usize, old_bytes: usize, new_bytes: usize, may_move: bool) -> Option<usize>;

    /// Moves a whole mapping over the caller's mapping at `to`. *Contents:* survive. `false`:
    /// refused, no change.
    fn replace(&self, at: usize, old_bytes: usize, to: usize, new_bytes: usize) -> bool;

    /// The old range reads as zeros. `false`: refused.
    fn move_memory(&self, at: usize, bytes: usize, to: usize) -> bool;
}

pub trait Machine {
    /// Possibly stale.
    fn cpu(&self) -> usize;

    fn page_size(&self) -> usize;

    /// Writes a zero where memory reads as zeros; returns the fault's processor time, or 0 if
    /// unknown.
    fn touch(&self, at: usize) -> u64;

    /// Of whole mapped pages; 0: unknown.
    fn resident(&self, at: usize, bytes: usize) -> usize;

    /// On hugepages; `None`: unknown.
    fn huge(&self, at: usize, bytes: usize) -> Option<usize>;

    /// Shut pages fault and lose their contents. `false`: refused, no change.
    fn shut(&self, at: usize, bytes: usize, shut: bool) -> bool;
}

pub trait Platform: Floor {
    /// Beside the region.
    type System: Mappings + Machine;
}
