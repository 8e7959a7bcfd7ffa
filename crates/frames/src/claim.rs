//! A CPU's claimed frames that are not handed out.

use crate::field;
use crate::geometry::Geometry;

/// At most 32 frames of one half of a row, allocated for a CPU and not handed out: the half's
/// number plus 1 in the upper 32 bits, a bit for each frame below. 0 is no claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim(pub(crate) u64);

impl Claim {
    pub(crate) const fn new(half: usize, mask: u32) -> Self {
        Self((half as u64 + 1) << 32 | mask as u64)
    }

    pub(crate) const fn half(self) -> usize {
        (self.0 >> 32) as usize - 1
    }

    pub(crate) const fn mask(self) -> u32 {
        self.0 as u32
    }

    /// Whether it is a claim of this half, also an empty one.
    #[inline]
    pub(crate) const fn is_of(self, half: usize) -> bool {
        (self.0 >> 32) as usize == half + 1
    }

    #[inline]
    pub(crate) const fn among(self, half: usize) -> u32 {
        if self.is_of(half) { self.mask() } else { 0 }
    }

    #[inline]
    pub(crate) const fn with(self, bit: u32) -> Self {
        Self(self.0 | bit as u64)
    }

    /// A frame's half and its bit there.
    pub(crate) const fn of<G: Geometry>(frame: usize) -> (usize, u32) {
        (frame >> G::CLAIM_ORDER, 1 << (frame & ((1 << G::CLAIM_ORDER) - 1)))
    }

    /// Whether the claim holds any of 2^`order` frames.
    pub(crate) const fn has_any<G: Geometry>(self, frame: usize, order: u32) -> bool {
        let first = self.half() << G::CLAIM_ORDER;
        if order >= G::CLAIM_ORDER {
            return self.mask() != 0 && first >> order == frame >> order;
        }
        let at = (frame & ((1 << G::CLAIM_ORDER) - 1)) as u32;
        self.is_of(frame >> G::CLAIM_ORDER) && self.mask() as u64 & field::mask(at, order) != 0
    }

    #[inline]
    pub(crate) const fn pop<G: Geometry>(self) -> (usize, Self) {
        let frame = (self.half() << G::CLAIM_ORDER) + self.mask().trailing_zeros() as usize;
        (frame, Self(self.0 & (self.0 - 1)))
    }
}
