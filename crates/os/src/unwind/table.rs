//! A table from words to words, usable at any time without locks or orderings.
//!
//! **What.** An entry holds `[key ^ value, value]`; halves mixed by a race do not match, and the
//! entry counts as empty.
//! **State.** `N` entries, a power of two, in pairs of one cache line each: the first has the
//! latest write, the second the one before, so that two alternating keys keep both. 0 is no value.
//! Keys spread over the first page of entries until there are as many, then over all: hashed over
//! all from the start, each of a small program's few keys would take a page.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Entries of a page, over which the first keys spread.
const FIRST: u32 = 256;

#[repr(align(32))]
pub(super) struct Table<const N: usize> {
    entries: [Entry; N],
    /// Keys stored so far, up to [`FIRST`].
    stored: AtomicU32,
}

#[repr(align(16))]
struct Entry {
    crossed: AtomicU64,
    value: AtomicU64,
}

impl Entry {
    /// The value, if it is that of a key, or 0.
    #[inline]
    fn of(&self, key: u64) -> u64 {
        let (crossed, value) = (self.crossed.load(Relaxed), self.value.load(Relaxed));
        if crossed ^ value == key { value } else { 0 }
    }

    fn set(&self, crossed: u64, value: u64) {
        self.crossed.store(crossed, Relaxed);
        self.value.store(value, Relaxed);
    }
}

impl<const N: usize> Table<N> {
    pub(super) const fn new() -> Self {
        assert!(N.is_power_of_two() && N > 1, "pairs of entries");
        Self {
            entries: [const { Entry { crossed: AtomicU64::new(0), value: AtomicU64::new(0) } }; N],
            stored: AtomicU32::new(0),
        }
    }

    /// The value of a key, or 0.
    #[inline]
    pub(super) fn get(&self, key: u64) -> u64 {
        let place = self.place(key);
        match self.entries[place].of(key) {
            0 => self.entries[place + 1].of(key),
            value => value,
        }
    }

    /// Stores a key's value, which is not 0.
    pub(super) fn put(&self, key: u64, value: u64) {
        let stored = self.stored.load(Relaxed);
        if stored < FIRST {
            // Racing threads count one for two. From then on most keys are stored anew.
            self.stored.store(stored + 1, Relaxed);
        }
        let place = self.place(key);
        let (entry, beside) = (&self.entries[place], &self.entries[place + 1]);
        if entry.of(key) == 0 {
            beside.set(entry.crossed.load(Relaxed), entry.value.load(Relaxed));
        }
        entry.set(key ^ value, value);
    }

    pub(super) fn clear(&self) {
        for entry in &self.entries {
            // An entry with the value 0 is empty. A store would give it memory.
            if entry.value.load(Relaxed) != 0 {
                entry.value.store(0, Relaxed);
            }
        }
    }

    /// The number of the last entry with a value; 0 without one.
    #[cfg(test)]
    pub(super) fn last(&self) -> usize {
        self.entries.iter().rposition(|entry| entry.value.load(Relaxed) != 0).unwrap_or(0)
    }

    /// The first of a key's two entries, by the golden ratio, which scatters near addresses.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N.trailing_zeros())) as usize & !1;
        if self.stored.load(Relaxed) < FIRST { place % FIRST as usize } else { place }
    }
}
