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
    /// Three stores: the bit of the object `new`, the slot, and the word `home`. [`Fixed`] has the
    /// other fields.
    Publish = 12,
}

impl Kind {
    const ALL: [Self; 12] = [
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
        Self::Publish,
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
            Kind::Publish => Some((self.new, u64::from(Fixed::of(self).len) * 16)),
            Kind::Free | Kind::FreeGuest => Some((self.old, len * 16)),
            Kind::AllocExtent => Some((self.new, len * PAGE)),
            Kind::FreeExtent => Some((self.old, len * PAGE)),
            Kind::NewSlab => Some((self.new, UNIT)),
            Kind::FreeSlab => Some((self.old, UNIT)),
        }
    }
}

/// Fields of a line of [`Kind::Publish`] about its object, whose contents do not change before it
/// is freed. The line counts only if the object has the contents of `check`, so object and line
/// become durable by one fence.
///
/// **State.** `old` is `check` 52 | `mid` 12, and `len` is `words` 16 | `len` 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// Of 16 bytes.
    pub len: u16,
    /// In the slab's bitmap.
    pub mid: u32,
    /// 0: the contents are durable already.
    pub words: u16,
    pub check: u64,
}

const MID_BITS: u32 = 12;

impl Fixed {
    #[inline]
    pub fn of(redo: &Redo) -> Self {
        Self {
            len: redo.len as u16,
            mid: (redo.old & ((1 << MID_BITS) - 1)) as u32,
            words: (redo.len >> 16) as u16,
            check: redo.old >> MID_BITS,
        }
    }

    /// Of the line whose slot gets `object`, and whose `word` gets `value`.
    #[inline]
    pub fn redo(&self, slot: u64, object: u64, (word, value): (u64, u64)) -> Redo {
        let old = self.check << MID_BITS | u64::from(self.mid);
        let len = u32::from(self.words) << 16 | u32::from(self.len);
        Redo { kind: Kind::Publish, slot, old, new: object, home: word, value, len }
    }
}

/// Of an object's words, for [`Fixed::check`]: a sum of products, whose factors depend on the
/// places of the words.
pub struct Contents {
    key: u64,
    sum: u64,
    /// The first factor of the next product.
    odd: Option<u64>,
    words: u16,
}

impl Contents {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    #[inline]
    pub fn new(seed: u64) -> Self {
        Self { key: seed, sum: 0, odd: None, words: 0 }
    }

    #[inline]
    pub fn add(&mut self, word: u64) {
        self.words += 1;
        match self.odd.take() {
            None => self.odd = Some(word),
            Some(first) => self.multiply(first, word),
        }
    }

    #[inline]
    fn multiply(&mut self, first: u64, second: u64) {
        self.key = self.key.wrapping_add(Self::STEP);
        let product = u128::from(first ^ self.key) * u128::from(second ^ self.key.rotate_left(32));
        self.sum = self.sum.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }

    /// Words and check.
    #[inline]
    pub fn end(mut self) -> (u16, u64) {
        if let Some(first) = self.odd.take() {
            self.multiply(first, 0);
        }
        (self.words, (self.sum ^ u64::from(self.words)).wrapping_mul(Self::STEP) >> MID_BITS)
    }
}

#[cfg(test)]
mod tests;
