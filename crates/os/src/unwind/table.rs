//! A table from words to words that anybody may use at any time.
//!
//! **What.** An entry keeps a value, and beside it the value crossed with its key. Two writers, or a writer and a reader, that meet may
//! mix two entries' halves: then they do not fit together, and the entry is as good as empty. So there is nothing to lock, and nothing
//! to order.
//!
//! **State.** `N` entries, a power of two, each `[key ^ value, value]`; a key has one place, and the last one written stays. 0 is no
//! value.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module.
pub(super) struct Table<const N: usize> {
    entries: [Entry; N],
}

#[repr(align(16))]
struct Entry {
    crossed: AtomicU64,
    value: AtomicU64,
}

impl<const N: usize> Table<N> {
    /// An empty one.
    pub(super) const fn new() -> Self {
        assert!(N.is_power_of_two() && N > 1);
        Self { entries: [const { Entry { crossed: AtomicU64::new(0), value: AtomicU64::new(0) } }; N] }
    }

    /// The value of a key, or 0.
    #[inline]
    pub(super) fn get(&self, key: u64) -> u64 {
        let entry = &self.entries[Self::place(key)];
        let (crossed, value) = (entry.crossed.load(Relaxed), entry.value.load(Relaxed));
        if crossed ^ value == key { value } else { 0 }
    }

    /// Keeps a key's value, which is not 0.
    pub(super) fn put(&self, key: u64, value: u64) {
        let entry = &self.entries[Self::place(key)];
        entry.crossed.store(key ^ value, Relaxed);
        entry.value.store(value, Relaxed);
    }

    /// Empties all.
    pub(super) fn clear(&self) {
        for entry in &self.entries {
            // A value of 0 is none, whatever stands beside it.
            entry.value.store(0, Relaxed);
        }
    }

    /// By the golden ratio: addresses that lie side by side, and those that are round, come to different places.
    #[inline]
    fn place(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N.trailing_zeros())) as usize
    }
}
