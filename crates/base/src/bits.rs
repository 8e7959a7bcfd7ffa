//! A set of the 256 pages of one hugepage.
//!
//! **Cost.** 32 bytes; every question is a handful of word operations, so the page heap asks it under its lock.

use crate::PAGES_PER_HUGEPAGE;

const WORDS: usize = (PAGES_PER_HUGEPAGE / 64) as usize;

/// A set of `0..256`. All zero bytes are the empty set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bits256 {
    words: [u64; WORDS],
}

/// The bits of word `w` that lie in `first..first + len`.
const fn mask(w: usize, first: u32, len: u32) -> u64 {
    let (start, end) = (w as u32 * 64, w as u32 * 64 + 64);
    let lo = if first > start { first } else { start };
    let hi = if first + len < end { first + len } else { end };
    if lo >= hi {
        return 0;
    }
    let ones = if hi - lo == 64 { u64::MAX } else { (1u64 << (hi - lo)) - 1 };
    ones << (lo - start)
}

impl Bits256 {
    /// The empty set.
    pub const EMPTY: Self = Self { words: [0; WORDS] };

    /// Adds `first..first + len`; `first + len` is at most 256.
    pub fn insert(&mut self, first: u32, len: u32) {
        for w in 0..WORDS {
            self.words[w] |= mask(w, first, len);
        }
    }

    /// Takes `first..first + len` out; `first + len` is at most 256.
    pub fn remove(&mut self, first: u32, len: u32) {
        for w in 0..WORDS {
            self.words[w] &= !mask(w, first, len);
        }
    }

    /// Whether `i` is in the set; `false` from 256 on.
    pub fn contains(&self, i: u32) -> bool {
        i < PAGES_PER_HUGEPAGE && self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }

    /// How many of `first..first + len` are in the set.
    pub fn count(&self, first: u32, len: u32) -> u32 {
        (0..WORDS).map(|w| (self.words[w] & mask(w, first, len)).count_ones()).sum()
    }

    /// How many are in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// The first member at or behind `from`, or 256.
    pub fn next_set(&self, from: u32) -> u32 {
        self.next(from, 0)
    }

    /// The first non-member at or behind `from`, or 256.
    pub fn next_clear(&self, from: u32) -> u32 {
        self.next(from, u64::MAX)
    }

    fn next(&self, from: u32, flip: u64) -> u32 {
        let mut w = (from / 64) as usize;
        if w >= WORDS {
            return PAGES_PER_HUGEPAGE;
        }
        let mut word = (self.words[w] ^ flip) & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return w as u32 * 64 + word.trailing_zeros();
            }
            w += 1;
            if w == WORDS {
                return PAGES_PER_HUGEPAGE;
            }
            word = self.words[w] ^ flip;
        }
    }

    /// The runs of non-members as `(first, len)`, in order.
    pub fn clear_runs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = self.next_clear(at);
            if first >= PAGES_PER_HUGEPAGE {
                return None;
            }
            at = self.next_set(first);
            Some((first, at - first))
        })
    }

    /// Length of the longest run of non-members.
    pub fn longest_clear(&self) -> u32 {
        self.clear_runs().map(|(_, len)| len).max().unwrap_or(0)
    }

    /// Members of `self` that are not in `other`.
    pub fn minus(&self, other: &Self) -> Self {
        let mut out = *self;
        for w in 0..WORDS {
            out.words[w] &= !other.words[w];
        }
        out
    }

    /// The non-members.
    pub fn complement(&self) -> Self {
        Self { words: self.words.map(|w| !w) }
    }
}
