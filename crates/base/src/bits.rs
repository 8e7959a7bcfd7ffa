//! A set of the pages of one hugepage.
//!
//! **Cost.** 32 bytes; every question is a handful of word operations, so the page heap asks it under its lock.

use crate::PAGES_PER_HUGEPAGE;

const PAGES: u32 = PAGES_PER_HUGEPAGE;
const WORDS: usize = PAGES.div_ceil(64) as usize;
/// The bits of the last word that stand for a page.
const LAST: u64 = u64::MAX >> (WORDS as u32 * 64 - PAGES);

/// A set of `0..256`. All zero bytes are the empty set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct PageBits {
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

/// The words that `first..first + len` lies in.
#[inline]
fn covered(first: u32, len: u32) -> core::ops::Range<usize> {
    let end = (first + len).min(PAGES);
    (first / 64) as usize..end.div_ceil(64) as usize
}

impl PageBits {
    /// The empty set.
    pub const EMPTY: Self = Self { words: [0; WORDS] };
    /// All pages of a hugepage.
    pub const ALL: Self = {
        let mut words = [u64::MAX; WORDS];
        words[WORDS - 1] = LAST;
        Self { words }
    };

    /// Adds `first..first + len`; `first + len` is at most 256.
    #[inline]
    pub fn insert(&mut self, first: u32, len: u32) {
        for w in covered(first, len) {
            self.words[w] |= mask(w, first, len);
        }
    }

    /// Takes `first..first + len` out; `first + len` is at most 256.
    #[inline]
    pub fn remove(&mut self, first: u32, len: u32) {
        for w in covered(first, len) {
            self.words[w] &= !mask(w, first, len);
        }
    }

    /// Whether `i` is in the set; `false` from 256 on.
    #[inline]
    pub fn contains(&self, i: u32) -> bool {
        i < PAGES && self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }

    /// How many of `first..first + len` are in the set.
    #[inline]
    pub fn count(&self, first: u32, len: u32) -> u32 {
        covered(first, len).map(|w| (self.words[w] & mask(w, first, len)).count_ones()).sum()
    }

    /// Whether any of `first..first + len` is in the set.
    #[inline]
    pub fn any(&self, first: u32, len: u32) -> bool {
        covered(first, len).any(|w| self.words[w] & mask(w, first, len) != 0)
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
    #[inline]
    pub fn next_set(&self, from: u32) -> u32 {
        self.next(from, 0)
    }

    /// The first non-member at or behind `from`, or 256.
    #[inline]
    pub fn next_clear(&self, from: u32) -> u32 {
        self.next(from, u64::MAX)
    }

    #[inline]
    fn next(&self, from: u32, flip: u64) -> u32 {
        let mut w = (from / 64) as usize;
        if w >= WORDS {
            return PAGES;
        }
        let mut word = (self.words[w] ^ flip) & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return (w as u32 * 64 + word.trailing_zeros()).min(PAGES);
            }
            w += 1;
            if w == WORDS {
                return PAGES;
            }
            word = self.words[w] ^ flip;
        }
    }

    /// The last member in front of `before`, plus 1; 0 if there is none.
    #[inline]
    pub fn end_of_last_set(&self, before: u32) -> u32 {
        for w in (0..WORDS).rev() {
            let word = self.words[w] & mask(w, 0, before);
            if word != 0 {
                return w as u32 * 64 + 64 - word.leading_zeros();
            }
        }
        0
    }

    /// The run of non-members around the non-member `i`, as `(first, len)`.
    #[inline]
    pub fn clear_run_around(&self, i: u32) -> (u32, u32) {
        let first = self.end_of_last_set(i);
        (first, self.next_set(i) - first)
    }

    /// The runs of non-members as `(first, len)`, in order.
    pub fn clear_runs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let bits = *self;
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = bits.next_clear(at);
            if first >= PAGES {
                return None;
            }
            at = bits.next_set(first);
            Some((first, at - first))
        })
    }

    /// Length of the longest run of non-members.
    #[inline]
    pub fn longest_clear(&self) -> u32 {
        let (mut longest, mut at) = (0, self.next_clear(0));
        // What is left cannot hold a longer one.
        while at + longest < PAGES {
            let end = self.next_set(at);
            longest = longest.max(end - at);
            at = self.next_clear(end);
        }
        longest
    }

    /// The largest block of `1 << (n - 1)` non-members at a multiple of its size, as n; 0 when there is none. Blocks of more than 8
    /// do not count: n is at most 4.
    pub fn largest_clear_block(&self) -> u32 {
        let [mut ones, mut twos, mut fours, mut eights] = [0u64; 4];
        for word in self.complement().words {
            let two = word & (word >> 1) & 0x5555_5555_5555_5555;
            let four = two & (two >> 2) & 0x1111_1111_1111_1111;
            ones |= word;
            twos |= two;
            fours |= four;
            eights |= four & (four >> 4) & 0x0101_0101_0101_0101;
        }
        [ones, twos, fours, eights].iter().map(|blocks| u32::from(*blocks != 0)).sum()
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
        Self::ALL.minus(self)
    }
}
