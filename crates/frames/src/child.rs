//! The entry of a huge frame.
//!
//! **State.** `free` 10 bits · `quarters` 4 · `pending` 1; the last marked claims in earlier
//! versions, and is ignored. Two entries are one atomic word: order 10 is one change, and no word
//! is accessed by two sizes.

use crate::geometry::{Geometry, QUARTERS};

const FREE: u16 = 0x3ff;
const QUARTERS_AT: u32 = 10;
const IGNORED: u16 = 1 << 15;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Child(pub(crate) u16);

impl Child {
    pub(crate) const fn with_free(free: u16) -> Self {
        Self(free)
    }

    pub(crate) const ALLOCATED: Self = Self(0xf << QUARTERS_AT);

    /// A thread turns rows into a quarter, or back.
    pub(crate) const PENDING: u16 = 1 << 14;
    pub(crate) const MARK: u16 = IGNORED;

    /// Never overstated.
    pub(crate) const fn free(self) -> usize {
        (self.0 & FREE) as usize
    }

    /// Their rows are zero.
    pub(crate) const fn quarters(self) -> u16 {
        self.0 >> QUARTERS_AT & 0xf
    }

    pub(crate) const fn has_quarter(self, quarter: usize) -> bool {
        self.quarters() >> quarter & 1 == 1
    }

    pub(crate) const fn is_pending(self) -> bool {
        self.0 & Self::PENDING != 0
    }

    pub(crate) const fn is_plain(self) -> bool {
        self.0 & !(FREE | IGNORED) == 0
    }

    pub(crate) fn is_empty<G: Geometry>(self) -> bool {
        self.free() == G::HUGE
    }

    pub(crate) const fn take(self, frames: usize) -> Option<Self> {
        if self.free() >= frames { Some(Self(self.0 - frames as u16)) } else { None }
    }

    pub(crate) const fn give(self, frames: usize) -> Self {
        Self(self.0 + frames as u16)
    }

    pub(crate) const fn known(self) -> Self {
        Self(self.0 & !IGNORED)
    }

    pub(crate) const fn begin(self) -> Option<Self> {
        if self.is_pending() { None } else { Some(Self(self.0 | Self::PENDING)) }
    }

    pub(crate) const fn end(self) -> Self {
        Self(self.0 & !Self::PENDING)
    }

    pub(crate) const fn with_quarters(self, quarters: u16) -> Self {
        Self(self.0 | quarters << QUARTERS_AT)
    }

    #[inline(always)]
    pub(crate) const fn whole_but<G: Geometry>(quarters: u16) -> Self {
        let free = (0x0112_1223_1223_2334_u64 >> (4 * quarters) & 0xf) as u16;
        Self((free * (G::FULL_CHILD / QUARTERS as u16)) | (quarters << QUARTERS_AT))
    }

    #[inline(always)]
    pub(crate) const fn free_quarters(quarters: u16, count: usize) -> Option<u16> {
        let free = !quarters & 0xf;
        if count == 1 {
            return if free == 0 { None } else { Some(free & free.wrapping_neg()) };
        }
        if free & 3 == 3 {
            Some(3)
        } else if free & 12 == 12 {
            Some(12)
        } else {
            None
        }
    }

    pub(crate) const fn without_quarters(self, quarters: u16) -> Option<Self> {
        if self.quarters() & quarters == quarters { Some(Self(self.0 & !(quarters << QUARTERS_AT))) } else { None }
    }
}
