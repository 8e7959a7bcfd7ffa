//! Seams beside the region: [`Mappings`] for huge objects and the heap's tables, [`Machine`].

use crate::Floor;

/// Addresses and lengths are the caller's whole machine pages.
pub trait Mappings {
    /// Maps zeroed memory at a multiple of `align` (a power of two). `None`: refused.
    fn map(&self, bytes: usize, align: usize) -> Option<usize>;

    /// Reserves zeroed hugepages, to be used in part. `None`: refused, or addresses are scarce.
    fn reserve(&self, bytes: usize) -> Option<usize>;

    /// Part of a mapping, which then reads as zeros on small pages.
    fn discard(&self, at: usize, bytes: usize);

    /// Part or all of a mapping.
    fn unmap(&self, at: usize, bytes: usize);

    /// *Contents:* survive.
    fn advise_huge(&self, at: usize, bytes: usize);

    /// Refuses the system's unasked hugepages, or takes that back. *Contents:* survive.
    fn refuse_huge(&self, at: usize, bytes: usize, refuse: bool);

    /// A whole mapping; returns its address. *Contents:* survive. *Refused:* unchanged.
    fn grow(&self, at: usize, old_bytes: usize, new_bytes: usize, may_move: bool) -> Option<usize>;

    /// Moves a whole mapping over the caller's mapping at `to`, `new_bytes` long then. *Contents:*
    /// survive. `false`: refused, no change.
    fn replace(&self, at: usize, old_bytes: usize, to: usize, new_bytes: usize) -> bool;

    /// Moves memory over another range; the old one reads as zeros. `false`: refused.
    fn move_memory(&self, at: usize, bytes: usize, to: usize) -> bool;
}

pub trait Machine {
    /// Possibly stale.
    fn cpu(&self) -> usize;

    fn page_size(&self) -> usize;

    /// Writes a zero where memory reads as zeros; returns the fault's processor time, or 0 if
    /// unknown.
    fn touch(&self, at: usize) -> u64;

    /// Returns the resident bytes of whole mapped pages; 0 if unknown.
    fn resident(&self, at: usize, bytes: usize) -> usize;

    /// Returns the bytes on hugepages; `None` if unknown.
    fn huge(&self, at: usize, bytes: usize) -> Option<usize>;

    /// Shuts whole machine pages, which then fault and lose their contents, or opens them. `false`:
    /// refused, no change.
    fn shut(&self, at: usize, bytes: usize, shut: bool) -> bool;
}

pub trait Platform: Floor {
    /// Serves requests beside the region.
    type System: Mappings + Machine;
}
