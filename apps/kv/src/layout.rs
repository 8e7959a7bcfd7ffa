//! The persistent structures. Little endian; a slot holds an offset in the store, or 0.
//! ```text
//! root      0 magic "CRATONKV" | 8 version 2 | 16 slot: index in use | 24 slot: index being freed
//!           32 generation of the log that begins here, on disks
//! index     0 tag | 8 slot: next index | 16.. 510 slots of directories
//! directory 0 valid bits, 2 words | 16 low | 64.. 128 slots of leaves
//! leaf      0 tag | 8 low | 64.. 9 lines: 7 slots of pairs | 56 word of these slots
//! word      a fingerprint of each slot, from the lowest byte on | 7 valid bits
//! low       0 tag and length | 8 slot: object with the bytes, if longer than 32 | 16 32 bytes
//! pair      0 length of key u32, of value u32 | 8 key, padded to 8 | value, padded to 8
//! ```
//! **Invariants.** *KV5* a slot whose bit is set holds a published object, or 0. *KV6* `low` is not
//! above any key below the node and never changes. *KV7* fingerprints of valid slots are right.
//! A slot is *valid* if its bit is set and it is not 0. Slots whose bit is clear may be stale.
//!
//! A slot and its word share a line, which an insertion changes alone; a deletion clears the slot.

use crate::store::{Change, Reservation, Store, StoreError, equals, load, padded, read, words_of, write};
use craton_base::atomic::{AtomicU64, Ordering};

pub const ROOT_BYTES: u64 = 64;
pub const MAGIC: u64 = u64::from_le_bytes(*b"CRATONKV");
pub const VERSION: u64 = 2;
pub const LIVE: u64 = 16;
pub const DEAD: u64 = 24;
pub const GENERATION: u64 = 32;

pub const INDEX_SLOTS: u64 = 510;
pub const INDEX_BYTES: u64 = 16 + 8 * INDEX_SLOTS;
pub const INDEX_TAG: u64 = u64::from_le_bytes(*b"KVINDEX1");

pub const DIR_SLOTS: u64 = 128;
pub const DIR_LOW: u64 = 16;
pub const DIR_BYTES: u64 = 64 + 8 * DIR_SLOTS;

/// Slots of a line.
pub const ROW: usize = 7;
pub const ROWS: usize = 9;
pub const SLOTS: usize = ROW * ROWS;
/// A bit for each slot of a leaf.
pub const FULL: u64 = (1 << SLOTS) - 1;
pub const LEAF_LOW: u64 = 8;
pub const LEAF_BYTES: u64 = 64 * (1 + ROWS as u64);
pub const LEAF_TAG: u64 = u64::from_le_bytes(*b"KVLEAF02");

/// Longest low in the node.
pub const INLINE: usize = 32;
const LOW_TAG: u64 = 0x4c4f_5721 << 32;

/// 512 MiB, as in Redis.
pub const LONGEST: usize = 512 << 20;

pub fn index_slot(index: u64, i: u64) -> u64 {
    index + 16 + 8 * i
}

pub fn dir_slot(dir: u64, i: u64) -> u64 {
    dir + 64 + 8 * i
}

pub fn leaf_slot(leaf: u64, i: usize) -> u64 {
    row_word(leaf, i / ROW) - 56 + 8 * (i % ROW) as u64
}

/// The word of a row's fingerprints and bits.
pub fn row_word(leaf: u64, row: usize) -> u64 {
    leaf + 64 + 64 * row as u64 + 56
}

pub fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    pub at: u64,
    pub key_len: usize,
    pub value_len: usize,
}

impl Pair {
    pub fn bytes(key: &[u8], value_len: usize) -> u64 {
        8 + padded(key.len()) + padded(value_len)
    }

    pub fn load<S: Store>(store: &S, at: u64) -> Result<Self, StoreError> {
        let lengths = load(store, at)?;
        let (key_len, value_len) = ((lengths & 0xffff_ffff) as usize, (lengths >> 32) as usize);
        if key_len > LONGEST || value_len > LONGEST {
            return Err(StoreError::Damaged(at));
        }
        Ok(Self { at, key_len, value_len })
    }

    /// Durable with the commit.
    pub fn reserve<S: Store>(store: &S, key: &[u8], value: &[u8]) -> Result<S::Reserved, StoreError> {
        let bytes = Self::bytes(key, value.len());
        if let Some(long) = [key.len(), value.len()].into_iter().find(|len| *len > LONGEST) {
            return Err(StoreError::TooLarge(long as u64));
        }
        let mut object = store.reserve(bytes)?;
        let lengths = key.len() as u64 | (value.len() as u64) << 32;
        store.fill(&mut object, [lengths].into_iter().chain(words_of(key)).chain(words_of(value)));
        Ok(object)
    }

    pub fn has_key<S: Store>(&self, store: &S, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.key_len == key.len() && equals(store, self.at + 8, key)?)
    }

    pub fn read_key<S: Store>(&self, store: &S, out: &mut Vec<u8>) -> Result<(), StoreError> {
        read(store, self.at + 8, self.key_len, out)
    }

    pub fn read_value<S: Store>(&self, store: &S, out: &mut Vec<u8>) -> Result<(), StoreError> {
        read(store, self.at + 8 + padded(self.key_len), self.value_len, out)
    }
}

pub struct NewLow<R> {
    object: Option<R>,
}

impl<R: Reservation> NewLow<R> {
    pub fn write<S: Store<Reserved = R>>(store: &S, at: u64, low: &[u8]) -> Result<Self, StoreError> {
        store.store(at, LOW_TAG | low.len() as u64);
        store.store(at + 8, 0);
        if low.len() <= INLINE {
            for i in 0..INLINE as u64 / 8 {
                store.store(at + 16 + 8 * i, 0);
            }
            write(store, at + 16, low);
            return Ok(Self { object: None });
        }
        let object = store.reserve(padded(low.len()))?;
        write(store, object.at(), low);
        store.persist(object.at(), padded(low.len()));
        Ok(Self { object: Some(object) })
    }

    pub fn cancel<S: Store<Reserved = R>>(self, store: &S) {
        if let Some(object) = self.object {
            store.cancel(object);
        }
    }

    /// Follows the node's change.
    pub fn attach(self, at: u64) -> Option<Change<R>> {
        self.object.map(|object| Change::Attach { slot: at + 8, object })
    }
}

pub fn free_low<S: Store>(store: &S, at: u64) -> Result<Option<Change<S::Reserved>>, StoreError> {
    Ok((load(store, at + 8)? != 0).then_some(Change::Free { slot: at + 8 }))
}

pub fn read_low<S: Store>(store: &S, at: u64) -> Result<Box<[u8]>, StoreError> {
    let word = load(store, at)?;
    let len = (word & 0xffff_ffff) as usize;
    if word >> 32 << 32 != LOW_TAG || len > LONGEST {
        return Err(StoreError::Damaged(at));
    }
    let mut low = Vec::new();
    let from = if len <= INLINE { at + 16 } else { load(store, at + 8)? };
    read(store, from, len, &mut low)?;
    Ok(low.into_boxed_slice())
}

pub fn write_leaf<S: Store>(
    store: &S,
    at: u64,
    low: &[u8],
    pairs: &[(u8, u64)],
) -> Result<NewLow<S::Reserved>, StoreError> {
    let new_low = NewLow::write(store, at + LEAF_LOW, low)?;
    store.store(at, LEAF_TAG);
    store.store(at + 56, 0);
    let prints = Prints::of(pairs.iter().map(|(print, _)| *print));
    for i in 0..SLOTS {
        store.store(leaf_slot(at, i), pairs.get(i).map_or(0, |(_, pair)| *pair));
    }
    (0..ROWS).for_each(|row| store.store(row_word(at, row), prints.row(row)));
    store.persist(at, LEAF_BYTES);
    Ok(new_low)
}

pub fn write_dir<S: Store>(store: &S, at: u64, low: &[u8], leaves: &[u64]) -> Result<NewLow<S::Reserved>, StoreError> {
    let new_low = NewLow::write(store, at + DIR_LOW, low)?;
    let bits = !(u128::MAX.checked_shl(leaves.len() as u32).unwrap_or(0));
    store.store(at, bits as u64);
    store.store(at + 8, (bits >> 64) as u64);
    for i in 0..DIR_SLOTS {
        store.store(dir_slot(at, i), leaves.get(i as usize).copied().unwrap_or(0));
    }
    store.persist(at, DIR_BYTES);
    Ok(new_low)
}

pub fn write_index<S: Store>(store: &S, at: u64) {
    store.store(at, INDEX_TAG);
    for i in 1..INDEX_BYTES / 8 {
        store.store(at + 8 * i, 0);
    }
    store.persist(at, INDEX_BYTES);
}

pub fn dir_leaves<S: Store>(store: &S, dir: u64) -> Result<Vec<u64>, StoreError> {
    let (low, high) = (load(store, dir)?, load(store, dir + 8)?);
    Ok(bits(low).map(|i| i as u64).chain(bits(high).map(|i| 64 + i as u64)).collect())
}

pub fn fingerprint(key: &[u8]) -> u8 {
    let mut hash = 0x9e37_79b9_7f4a_7c15 ^ key.len() as u64;
    for part in key.chunks(8) {
        let product = u128::from(hash ^ crate::store::word_of(part)) * 0xd6e8_feb8_6659_fd93_u128;
        hash = product as u64 ^ (product >> 64) as u64;
    }
    (hash >> 32) as u8 ^ hash as u8
}

/// A leaf's fingerprints and valid bits in DRAM, so that a search reads no line of the leaf but a
/// slot's. Written under the leaf's latch; readers compare its version.
pub struct Prints {
    /// A byte for each slot.
    prints: [AtomicU64; 8],
    valid: AtomicU64,
}

impl Prints {
    /// Of a leaf with these slots, from the first on.
    pub fn of(prints: impl IntoIterator<Item = u8>) -> Self {
        let new = Self { prints: [const { AtomicU64::new(0) }; 8], valid: AtomicU64::new(0) };
        prints.into_iter().enumerate().for_each(|(i, print)| new.insert(i, print));
        new
    }

    pub fn read<S: Store>(store: &S, leaf: u64) -> Result<Self, StoreError> {
        let new = Self::of([]);
        for row in 0..ROWS {
            let word = load(store, row_word(leaf, row))?;
            for i in bits(word >> (8 * ROW)).take_while(|i| *i < ROW) {
                if load(store, leaf_slot(leaf, row * ROW + i))? != 0 {
                    new.insert(row * ROW + i, (word >> (8 * i)) as u8);
                }
            }
        }
        Ok(new)
    }

    /// With some slots alone.
    pub fn kept(&self, stay: u64) -> Self {
        let prints = self.prints.each_ref().map(|word| AtomicU64::new(word.load(Ordering::Relaxed)));
        Self { prints, valid: AtomicU64::new(self.valid() & stay) }
    }

    #[inline]
    pub fn valid(&self) -> u64 {
        self.valid.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn insert(&self, i: usize, print: u8) {
        let shift = 8 * (i % 8);
        let word = &self.prints[i / 8];
        let others = word.load(Ordering::Relaxed) & !(0xff << shift);
        word.store(others | u64::from(print) << shift, Ordering::Relaxed);
        self.valid.store(self.valid() | 1 << i, Ordering::Relaxed);
    }

    #[inline]
    pub fn remove(&self, i: usize) {
        self.valid.store(self.valid() & !(1 << i), Ordering::Relaxed);
    }

    #[inline]
    fn print(&self, i: usize) -> u8 {
        (self.prints[i / 8].load(Ordering::Relaxed) >> (8 * (i % 8))) as u8
    }

    /// As the leaf has it.
    #[inline]
    pub fn row(&self, row: usize) -> u64 {
        self.row_with(row, self.valid())
    }

    #[inline]
    pub fn row_with(&self, row: usize, valid: u64) -> u64 {
        let prints = (0..ROW).fold(0, |word, i| word | u64::from(self.print(row * ROW + i)) << (8 * i));
        prints | (valid >> (row * ROW) & ((1 << ROW) - 1)) << (8 * ROW)
    }

    /// The row with another slot.
    #[inline]
    pub fn row_and(&self, i: usize, print: u8) -> u64 {
        let shift = 8 * (i % ROW);
        self.row_with(i / ROW, self.valid() | 1 << i) & !(0xff << shift) | u64::from(print) << shift
    }

    /// The valid slots with the fingerprint.
    #[inline]
    pub fn matches(&self, print: u8) -> u64 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let pattern = ONES * u64::from(print);
        let mut mask = 0;
        for (i, word) in self.prints.iter().enumerate() {
            let x = word.load(Ordering::Relaxed) ^ pattern;
            // The top bit of each zero byte, then the eight top bits side by side.
            let zero = !(((x & LOW) + LOW) | x | LOW);
            mask |= ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
        }
        mask & self.valid()
    }
}

/// Of a leaf with these prints.
#[inline]
pub fn find<S: Store>(
    store: &S,
    leaf: u64,
    prints: &Prints,
    key: &[u8],
    print: u8,
) -> Result<Option<(usize, Pair)>, StoreError> {
    for i in bits(prints.matches(print)) {
        let pair = Pair::load(store, load(store, leaf_slot(leaf, i))?)?;
        if pair.has_key(store, key)? {
            return Ok(Some((i, pair)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
