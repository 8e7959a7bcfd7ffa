//! Words of the bookkeeping log (NVAlloc §5.3).
//!
//! ```text
//! normal, slab   pages 26 | page address 36 | type 2      type 1 or 2
//! tombstone      check 15 | chunk id 40 | slot 7 | type 2  type 3
//! head, alt      value 38 | check 26
//! id             chunk id 40 | check 24
//! link           1 KiB place 38 | active 1 | check 25      place 0: the last one
//! ```
//! An extent's entry has no bit left for a check: its chunk's seal covers it. Chunk ids are never
//! used twice, so a stale tombstone cancels nothing.

pub(crate) const PAGES_BITS: u32 = 26;
pub(crate) const PAGE_BITS: u32 = 36;
const TYPE_BITS: u32 = 2;
const SLOT_BITS: u32 = 7;
const ID_BITS: u32 = 40;
const PLACE_BITS: u32 = 38;
const PLACE_SHIFT: u32 = 10;

const NORMAL: u64 = 1;
const SLAB: u64 = 2;
const TOMBSTONE: u64 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    Empty,
    Extent { page: u64, pages: u32, is_slab: bool },
    Tombstone { id: u64, slot: u8 },
}

/// The finalizer of MurmurHash3.
pub(crate) fn mix(salt: u64, a: u64, b: u64) -> u64 {
    let mut hash = salt ^ a.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in [b, 0x5851_f42d_4c95_7f2d] {
        hash ^= word;
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 33;
    }
    hash
}

const fn low(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

impl Entry {
    pub(crate) fn encode(self, salt: u64) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Extent { page, pages, is_slab } => {
                let kind = if is_slab { SLAB } else { NORMAL };
                u64::from(pages) << (PAGE_BITS + TYPE_BITS) | page << TYPE_BITS | kind
            }
            Self::Tombstone { id, slot } => {
                let word = id << (SLOT_BITS + TYPE_BITS) | u64::from(slot) << TYPE_BITS | TOMBSTONE;
                with_check(salt, 0, word, ID_BITS + SLOT_BITS + TYPE_BITS)
            }
        }
    }

    /// `None`: invalid.
    pub(crate) fn decode(salt: u64, word: u64) -> Option<Self> {
        match word & low(TYPE_BITS) {
            0 => (word == 0).then_some(Self::Empty),
            TOMBSTONE => {
                let named = checked(salt, 0, word, ID_BITS + SLOT_BITS + TYPE_BITS)? >> TYPE_BITS;
                Some(Self::Tombstone { id: named >> SLOT_BITS, slot: (named & low(SLOT_BITS)) as u8 })
            }
            kind => Some(Self::Extent {
                page: word >> TYPE_BITS & low(PAGE_BITS),
                pages: (word >> (PAGE_BITS + TYPE_BITS)) as u32,
                is_slab: kind == SLAB,
            }),
        }
    }

    pub(crate) fn is_tombstone(word: u64) -> bool {
        word & low(TYPE_BITS) == TOMBSTONE
    }
}

fn with_check(salt: u64, of: u64, word: u64, bits: u32) -> u64 {
    word | mix(salt, of, word) << bits
}

fn checked(salt: u64, of: u64, word: u64, bits: u32) -> Option<u64> {
    let value = word & low(bits);
    (with_check(salt, of, value, bits) == word).then_some(value)
}

/// The kind of a checked word; a word of one kind is invalid as another.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Head(bool),
    Alt,
    Id(u64),
    Link(u64),
}

impl Of {
    fn tag(self) -> u64 {
        match self {
            Self::Head(which) => 1 << 60 | u64::from(which),
            Self::Alt => 2 << 60,
            Self::Id(at) => 3 << 60 | at,
            Self::Link(id) => 4 << 60 | id,
        }
    }
}

pub(super) fn encode_place(salt: u64, of: Of, at: u64) -> u64 {
    with_check(salt, of.tag(), at >> PLACE_SHIFT, PLACE_BITS)
}

pub(super) fn decode_place(salt: u64, of: Of, word: u64) -> Option<u64> {
    checked(salt, of.tag(), word, PLACE_BITS).map(|place| place << PLACE_SHIFT)
}

/// Sets the chunk's active bit.
pub(super) fn encode_link(salt: u64, id: u64, at: u64) -> u64 {
    with_check(salt, Of::Link(id).tag(), at >> PLACE_SHIFT << 1 | 1, PLACE_BITS + 1)
}

pub(super) fn decode_link(salt: u64, id: u64, word: u64) -> Option<u64> {
    let value = checked(salt, Of::Link(id).tag(), word, PLACE_BITS + 1)?;
    (value & 1 == 1).then_some(value >> 1 << PLACE_SHIFT)
}

pub(super) fn encode_id(salt: u64, at: u64, id: u64) -> u64 {
    with_check(salt, Of::Id(at).tag(), id, ID_BITS)
}

pub(super) fn decode_id(salt: u64, at: u64, word: u64) -> Option<u64> {
    checked(salt, Of::Id(at).tag(), word, ID_BITS)
}
