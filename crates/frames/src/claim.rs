//! Frames of half a row that a CPU hands out one by one.
//!
//! **State.** held 1 · the half's number plus 1 in 31 bits · a bit for each free frame, 32. Half 0:
//! no claim; the lower bits then count the claims before.

use crate::field;
use crate::geometry::Geometry;

const HELD: u64 = 1 << 63;
/// A claimed half's bits: one of each aligned pair, so that no block of several frames fits, in an
/// order that requests hardly produce.
const MARK: u32 = 0x9a66_5a96;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim(pub(crate) u64);

impl Claim {
    pub(crate) const HALVES: u32 = 31;

    pub(crate) const fn new(half: usize, mask: u32) -> Self {
        Self((half as u64 + 1) << 32 | mask as u64)
    }

    pub(crate) const fn none(ended: u64) -> Self {
        Self(ended as u32 as u64)
    }

    pub(crate) const fn held(self) -> Self {
        Self(self.0 | HELD)
    }

    pub(crate) const fn is_held(self) -> bool {
        self.0 & HELD != 0
    }

    pub(crate) const fn is_none(self) -> bool {
        self.0 >> 32 == 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        !self.is_none() && !self.is_held() && self.mask() == 0
    }

    /// There is a claim.
    pub(crate) const fn half(self) -> usize {
        ((self.0 & !HELD) >> 32) as usize - 1
    }

    pub(crate) const fn mask(self) -> u32 {
        self.0 as u32
    }

    pub(crate) const fn frames(self) -> usize {
        if self.is_none() { 0 } else { self.mask().count_ones() as usize }
    }

    /// Open, also empty.
    #[inline(always)]
    pub(crate) const fn is_of(self, half: usize) -> bool {
        (self.0 >> 32) as usize == half + 1
    }

    pub(crate) const fn concerns(self, half: usize) -> bool {
        !self.is_none() && self.half() == half
    }

    #[inline(always)]
    pub(crate) const fn with(self, bit: u32) -> Self {
        Self(self.0 | bit as u64)
    }

    #[inline(always)]
    pub(crate) const fn of<G: Geometry>(frame: usize) -> (usize, u32) {
        (frame >> G::CLAIM_ORDER, 1 << (frame & ((1 << G::CLAIM_ORDER) - 1)))
    }

    #[inline(always)]
    pub(crate) const fn bits_of<G: Geometry>(half: usize) -> u64 {
        field::mask(Self::at::<G>(half), G::CLAIM_ORDER)
    }

    #[inline(always)]
    pub(crate) const fn at<G: Geometry>(half: usize) -> u32 {
        ((half << G::CLAIM_ORDER) & ((1 << G::ROW_ORDER) - 1)) as u32
    }

    #[inline(always)]
    pub(crate) const fn mark_of<G: Geometry>(half: usize) -> u64 {
        (MARK as u64) << Self::at::<G>(half) & Self::bits_of::<G>(half)
    }

    #[inline(always)]
    pub(crate) fn is_marked<G: Geometry>(bits: u64, mask: u64) -> bool {
        let unlike = bits ^ (Self::mark_of::<G>(0) | Self::mark_of::<G>(1));
        (0..1 << (G::ROW_ORDER - G::CLAIM_ORDER)).any(|half| {
            let of = Self::bits_of::<G>(half);
            unlike & of == 0 && mask & of != 0
        })
    }

    #[inline(always)]
    pub(crate) const fn pop<G: Geometry>(self) -> (usize, Self) {
        let frame = (self.half() << G::CLAIM_ORDER) + self.mask().trailing_zeros() as usize;
        (frame, Self(self.0 & (self.0 - 1)))
    }
}
