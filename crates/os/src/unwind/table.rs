//! A table from words to words, without locks or orderings.
//!
//! An entry holds `[key ^ value, value]`: halves mixed by a race count as empty. Entries are pairs,
//! so that two alternating keys stay. The first keys spread over one page, so that a small program
//! takes no more.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const FIRST: u32 = 256;

#[repr(align(32))]
pub(super) struct Table<const N: usize> {
    entries: [Entry; N],
    /// Keys, up to [`FIRST`].
    stored: AtomicU32,
}

#[repr(align(16))]
struct Entry {
    crossed: AtomicU64,
    value: AtomicU64,
}

impl Entry {
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

    #[inline]
    pub(super) fn get(&self, key: u64) -> u64 {
        let place = self.place(key);
        match self.entries[place].of(key) {
            0 => self.entries[place + 1].of(key),
            value => value,
        }
    }

    /// `value` is not 0.
    pub(super) fn put(&self, key: u64, value: u64) {
        let stored = self.stored.load(Relaxed);
        if stored < FIRST {
            // Racing threads count one for two.
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
            // A store would give an empty entry memory.
            if entry.value.load(Relaxed) != 0 {
                entry.value.store(0, Relaxed);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn last(&self) -> usize {
        self.entries.iter().rposition(|entry| entry.value.load(Relaxed) != 0).unwrap_or(0)
    }

    /// The golden ratio scatters near addresses.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N.trailing_zeros())) as usize & !1;
        if self.stored.load(Relaxed) < FIRST { place % FIRST as usize } else { place }
    }
}
