//! A redo line: up to two stores of one operation, a *slot* from `old` to `new`, and a *home* word
//! of the heap's records. It names the range that it allocates or frees, into which recovery voids
//! older lines' stores.

use crate::layout::{OFFSET_BITS, OFFSET_MASK, PAGE, UNIT, check_of};
use craton_base::Line;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A slot alone.
    Set = 1,
    /// Sets bits: `new` of `len` × 16 bytes is allocated.
    Alloc = 2,
    /// Clears bits: `old` of `len` × 16 bytes is free.
    Free = 3,
    /// Stores the home: `len` pages from `new` are allocated.
    AllocExtent = 4,
    /// Stores the home: `len` pages from `old` are free.
    FreeExtent = 5,
    /// As `AllocExtent`; a slab, whose first header word is `old`.
    NewSlab = 6,
    FreeSlab = 7,
    /// The slab at `home` gets the first header word `value`, and an empty bitmap.
    Morph = 8,
    /// The slab at `home` gets the first header word `value`.
    Settle = 9,
    /// As `Alloc`, of a guest.
    AllocGuest = 10,
    FreeGuest = 11,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Set,
        Self::Alloc,
        Self::Free,
        Self::AllocExtent,
        Self::FreeExtent,
        Self::NewSlab,
        Self::FreeSlab,
        Self::Morph,
        Self::Settle,
        Self::AllocGuest,
        Self::FreeGuest,
    ];

    fn of(number: u64) -> Option<Self> {
        Self::ALL.get((number as usize).wrapping_sub(1)).copied()
    }
}

/// One part of an operation. A slot of 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redo {
    pub kind: Kind,
    pub slot: u64,
    pub old: u64,
    pub new: u64,
    pub home: u64,
    pub value: u64,
    pub len: u32,
}

#[inline]
fn sum_of(line: &Line, seed: u64) -> u64 {
    line[..7].iter().fold(seed, |sum, word| sum ^ word)
}

/// Of an operation.
pub const PARTS_MOST: usize = 63;

/// Part of the line's check word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub epoch: u64,
    pub part: u32,
    pub parts: u32,
    pub stamp: u64,
}

impl Redo {
    pub const fn set(slot: u64, old: u64, new: u64) -> Self {
        Self { kind: Kind::Set, slot, old, new, home: 0, value: 0, len: 0 }
    }

    /// `seed` mixes the heap's uuid and the line's offset.
    #[inline]
    pub fn encode(&self, place: Place, seed: u64) -> Line {
        let first = (place.epoch << 16) | ((self.kind as u64) << 12) | u64::from((place.part << 6) | place.parts);
        let len = u64::from(self.len);
        let slot = self.slot | (len & 0xffff) << OFFSET_BITS;
        let home = self.home | (len >> 16) << OFFSET_BITS;
        let mut line = [first, place.stamp, slot, self.old, self.new, home, self.value, 0];
        line[7] = check_of(&line, seed);
        line
    }

    /// With a sum instead of a check, where another store commits the line. The sum costs less, and
    /// finds each change of one word.
    #[inline]
    pub fn encode_summed(&self, seed: u64) -> Line {
        let first = (self.kind as u64) << 12;
        let len = u64::from(self.len);
        let slot = self.slot | (len & 0xffff) << OFFSET_BITS;
        let home = self.home | (len >> 16) << OFFSET_BITS;
        let mut line = [first, 0, slot, self.old, self.new, home, self.value, 0];
        line[7] = sum_of(&line, seed);
        line
    }

    pub fn decode(line: &Line, seed: u64) -> Option<(Self, Place)> {
        (line[7] == check_of(line, seed)).then(|| Self::decode_unchecked(line)).flatten()
    }

    pub fn decode_summed(line: &Line, seed: u64) -> Option<(Self, Place)> {
        (line[7] == sum_of(line, seed)).then(|| Self::decode_unchecked(line)).flatten()
    }

    fn decode_unchecked(line: &Line) -> Option<(Self, Place)> {
        let kind = Kind::of((line[0] >> 12) & 15)?;
        let part = (line[0] >> 6 & 63) as u32;
        let place = Place { epoch: line[0] >> 16, part, parts: (line[0] & 63) as u32, stamp: line[1] };
        let len = (line[2] >> OFFSET_BITS | line[5] >> OFFSET_BITS << 16) as u32;
        let (slot, home) = (line[2] & OFFSET_MASK, line[5] & OFFSET_MASK);
        Some((Self { kind, slot, old: line[3], new: line[4], home, value: line[6], len }, place))
    }

    /// Allocated or freed bytes: beginning and length.
    pub fn range(&self) -> Option<(u64, u64)> {
        let len = u64::from(self.len);
        match self.kind {
            Kind::Set | Kind::Morph | Kind::Settle => None,
            Kind::Alloc | Kind::AllocGuest => Some((self.new, len * 16)),
            Kind::Free | Kind::FreeGuest => Some((self.old, len * 16)),
            Kind::AllocExtent => Some((self.new, len * PAGE)),
            Kind::FreeExtent => Some((self.old, len * PAGE)),
            Kind::NewSlab => Some((self.new, UNIT)),
            Kind::FreeSlab => Some((self.old, UNIT)),
        }
    }
}

#[cfg(test)]
mod tests;
