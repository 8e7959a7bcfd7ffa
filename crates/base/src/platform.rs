//! The other seams: [`Mappings`] for objects too large for the region and for the heap's tables,
//! [`Machine`] for the current CPU. [`Platform`] joins both to a [`Floor`].

use crate::Floor;

/// Memory outside the region. Addresses and lengths are whole machine pages of the caller's.
pub trait Mappings {
    /// Maps `bytes` of zeroed memory at a multiple of `align` (a power of two). `None`: refused.
    fn map(&self, bytes: usize, align: usize) -> Option<usize>;

    /// Maps zeroed hugepages that will be used in part. `None`: refused, or addresses are scarce.
    fn reserve(&self, bytes: usize) -> Option<usize>;

    /// Gives back the memory of part of a mapping, which then reads as zeros on small pages.
    fn discard(&self, at: usize, bytes: usize);

    /// Unmaps part or all of a mapping.
    fn unmap(&self, at: usize, bytes: usize);

    /// Asks for hugepages under a range. *Contents:* survive.
    fn advise_huge(&self, at: usize, bytes: usize);

    /// Where the system gives hugepages unasked: refuses them under a range, or takes that back.
    /// *Contents:* survive.
    fn refuse_huge(&self, at: usize, bytes: usize, refuse: bool);

    /// Grows a whole mapping, moving it only if allowed; returns its address. *Contents:* survive.
    /// *Refused:* unchanged.
    fn grow(&self, at: usize, old_bytes: usize, new_bytes: usize, may_move: bool) -> Option<usize>;

    /// Moves a whole mapping over another one of the caller's at `to`, and makes it `new_bytes`
    /// long. *Contents:* survive. `false`: refused, no change.
    fn replace(&self, at: usize, old_bytes: usize, to: usize, new_bytes: usize) -> bool;

    /// Moves a range's memory over another; the range then reads as zeros. `false`: refused.
    fn move_memory(&self, at: usize, bytes: usize, to: usize) -> bool;
}

/// The machine below.
pub trait Machine {
    /// The calling thread's CPU, possibly stale.
    fn cpu(&self) -> usize;

    fn page_size(&self) -> usize;

    /// Writes a zero to the caller's memory that reads as zeros; returns the fault's processor
    /// time, or 0 if unknown.
    fn touch(&self, at: usize) -> u64;

    /// Bytes of a mapped range of whole pages that have memory; 0 if unknown.
    fn resident(&self, at: usize, bytes: usize) -> usize;

    /// Those of them on hugepages; `None` if unknown.
    fn huge(&self, at: usize, bytes: usize) -> Option<usize>;

    /// Closes whole machine pages of usable memory, which then fault and lose their contents, or
    /// opens them again. `false`: refused, no change.
    fn shut(&self, at: usize, bytes: usize, shut: bool) -> bool;
}

/// A floor with the rest of its system.
pub trait Platform: Floor {
    /// What serves requests beside the region.
    type System: Mappings + Machine;
}
