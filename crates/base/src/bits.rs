//! A set of the pages of one hugepage: a few word operations each, under the page heap's lock.

use crate::{Geometry, Huge2M};
use core::marker::PhantomData;
use core::ops::ControlFlow;

const MOST_WORDS: usize = 4;

/// Up to here one loop over all words beats a walk over runs.
const SHORT_RUNS: u32 = 6;

/// Of `0..G::PAGES`. All zero bytes are the empty set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct PageBits<G = Huge2M> {
    words: [u64; MOST_WORDS],
    geometry: PhantomData<G>,
}

#[inline]
const fn ones(len: u32) -> u64 {
    if len < 64 { (1 << len) - 1 } else { u64::MAX }
}

/// Of 1, 2, 4 and 8 pages, each by its first bit.
#[inline]
fn blocks(free: u64) -> [u64; 4] {
    let two = free & (free >> 1) & 0x5555_5555_5555_5555;
    let four = two & (two >> 2) & 0x1111_1111_1111_1111;
    [free, two, four, four & (four >> 4) & 0x0101_0101_0101_0101]
}

impl<G: Geometry> PageBits<G> {
    const WORDS: usize = G::PAGES.div_ceil(64) as usize;
    const LAST: u64 = u64::MAX >> (Self::WORDS as u32 * 64 - G::PAGES);

    pub const EMPTY: Self = Self { words: [0; MOST_WORDS], geometry: PhantomData };
    pub const ALL: Self = {
        let (mut words, mut w) = ([0; MOST_WORDS], 0);
        while w < Self::WORDS {
            words[w] = u64::MAX;
            w += 1;
        }
        words[Self::WORDS - 1] = Self::LAST;
        Self { words, geometry: PhantomData }
    };

    /// The first set bit from `from` on, or 256.
    #[inline]
    fn next(from: u32, word: impl Fn(usize) -> u64) -> u32 {
        let mut w = (from / 64) as usize;
        if w >= Self::WORDS {
            return G::PAGES;
        }
        let mut left = word(w) & (u64::MAX << (from % 64));
        while left == 0 {
            w += 1;
            if w == Self::WORDS {
                return G::PAGES;
            }
            left = word(w);
        }
        (w as u32 * 64 + left.trailing_zeros()).min(G::PAGES)
    }

    /// `None`: two words do.
    #[inline]
    fn within(first: u32, len: u32) -> Option<(usize, u64)> {
        let (w, bit) = ((first / 64) as usize, first % 64);
        if bit + len <= 64 && w < Self::WORDS { Some((w, ones(len) << bit)) } else { None }
    }

    fn covered(first: u32, len: u32) -> impl Iterator<Item = (usize, u64)> {
        let (mut at, end) = (first, (first + len).min(G::PAGES));
        core::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (w, bit) = (at / 64, at % 64);
            let here = (end - at).min(64 - bit);
            at += here;
            Some((w as usize, ones(here) << bit))
        })
    }

    /// `first + len` ≤ 256.
    #[inline]
    pub fn insert(&mut self, first: u32, len: u32) {
        match Self::within(first, len) {
            Some((w, bits)) => self.words[w] |= bits,
            None => Self::covered(first, len).for_each(|(w, bits)| self.words[w] |= bits),
        }
    }

    /// `first + len` ≤ 256.
    #[inline]
    pub fn remove(&mut self, first: u32, len: u32) {
        match Self::within(first, len) {
            Some((w, bits)) => self.words[w] &= !bits,
            None => Self::covered(first, len).for_each(|(w, bits)| self.words[w] &= !bits),
        }
    }

    #[inline]
    pub fn contains(&self, i: u32) -> bool {
        i < G::PAGES && self.words[(i / 64) as usize] >> (i % 64) & 1 == 1
    }

    #[inline]
    pub fn count(&self, first: u32, len: u32) -> u32 {
        Self::covered(first, len).map(|(w, bits)| (self.words[w] & bits).count_ones()).sum()
    }

    #[inline]
    pub fn any(&self, first: u32, len: u32) -> bool {
        match Self::within(first, len) {
            Some((w, bits)) => self.words[w] & bits != 0,
            None => Self::covered(first, len).any(|(w, bits)| self.words[w] & bits != 0),
        }
    }

    #[inline]
    pub fn all(&self, first: u32, len: u32) -> bool {
        match Self::within(first, len) {
            Some((w, bits)) => !self.words[w] & bits == 0,
            None => Self::covered(first, len).all(|(w, bits)| !self.words[w] & bits == 0),
        }
    }

    pub fn len(&self) -> u32 {
        self.words.iter().map(|w| w.count_ones()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// The first member from `from` on, or 256.
    #[inline]
    pub fn next_set(&self, from: u32) -> u32 {
        Self::next(from, |w| self.words[w])
    }

    /// The first non-member from `from` on, or 256.
    #[inline]
    pub fn next_clear(&self, from: u32) -> u32 {
        Self::next(from, |w| !self.words[w])
    }

    /// The first non-member, or member of `ends`; or 256.
    #[inline]
    pub fn next_clear_or(&self, ends: &Self, from: u32) -> u32 {
        Self::next(from, |w| !self.words[w] | ends.words[w])
    }

    /// The last member before `before`, plus 1; or 0.
    #[inline]
    pub fn end_of_last_set(&self, before: u32) -> u32 {
        let mut w = (before / 64) as usize;
        let mut word = if w < Self::WORDS { self.words[w] & ones(before % 64) } else { 0 };
        while word == 0 {
            if w == 0 {
                return 0;
            }
            w -= 1;
            word = self.words[w];
        }
        w as u32 * 64 + 64 - word.leading_zeros()
    }

    /// Around the non-member `i`, as `(first, len)`.
    #[inline]
    pub fn clear_run_around(&self, i: u32) -> (u32, u32) {
        let first = self.end_of_last_set(i);
        (first, self.next_set(i) - first)
    }

    /// As `(first, len)`.
    pub fn clear_runs(&self) -> impl Iterator<Item = (u32, u32)> + use<G> {
        let bits = *self;
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = bits.next_clear(at);
            if first >= G::PAGES {
                return None;
            }
            at = bits.next_set(first);
            Some((first, at - first))
        })
    }

    /// `at_most` is a known bound.
    #[inline]
    pub fn longest_clear(&self, at_most: u32) -> u32 {
        if at_most <= SHORT_RUNS {
            return self.longest_short_run();
        }
        let mut longest = 0;
        self.try_clear_runs(|first, len| {
            longest = longest.max(len);
            if longest >= at_most || first + len + longest >= G::PAGES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        longest
    }

    /// Faster than [`PageBits::clear_runs`].
    #[inline]
    pub fn try_clear_runs(&self, mut each: impl FnMut(u32, u32) -> ControlFlow<()>) {
        let (mut first, mut len) = (0, 0);
        for (w, word) in self.words.iter().enumerate() {
            let base = w as u32 * 64;
            if Self::WORDS < MOST_WORDS && w == Self::WORDS {
                break;
            }
            let mut clear = if w == Self::WORDS - 1 { !word & Self::LAST } else { !word };
            if len > 0 {
                let more = (!clear).trailing_zeros();
                len += more;
                if more == 64 {
                    continue;
                }
                clear &= clear + 1;
                if each(first, len).is_break() {
                    return;
                }
                len = 0;
            }
            while clear != 0 {
                let at = clear.trailing_zeros();
                let here = (!(clear >> at)).trailing_zeros();
                if at + here == 64 {
                    (first, len) = (base + at, here);
                    break;
                }
                clear &= clear + (1 << at);
                if each(base + at, here).is_break() {
                    return;
                }
            }
        }
        if len > 0 {
            let _ = each(first, len);
        }
    }

    /// Quick for short ones.
    fn longest_short_run(&self) -> u32 {
        let mut left = self.complement().words;
        let mut longest = 0;
        while left.iter().any(|word| *word != 0) {
            longest += 1;
            for w in 0..Self::WORDS {
                let behind = if w + 1 < Self::WORDS { left[w + 1] << 63 } else { 0 };
                left[w] &= (left[w] >> 1) | behind;
            }
        }
        longest
    }

    /// Of `1 << (n - 1)` pages, as n: 0 (no block) to 4 (≥ 8).
    #[inline]
    pub fn largest_clear_block(&self) -> u32 {
        let mut found = [0u64; 4];
        for free in self.complement().words.into_iter() {
            let here = blocks(free);
            if here[3] != 0 {
                return 4;
            }
            (0..4).for_each(|level| found[level] |= here[level]);
        }
        found.iter().map(|blocks| u32::from(*blocks != 0)).sum()
    }

    /// Of `1 << level` pages (level ≤ 3), from the smallest block of up to 8.
    #[inline]
    pub fn smallest_clear_block(&self, level: u32) -> Option<u32> {
        let (mut best, mut place) = (4, None);
        for (w, free) in self.complement().words.into_iter().enumerate() {
            let [one, two, four, eight] = blocks(free);
            // Blocks outside larger free ones.
            let alone = [one & !(two | two << 1), two & !(four | four << 2), four & !(eight | eight << 4), eight];
            if let Some(found) = (level..best).find(|l| alone[*l as usize] != 0) {
                (best, place) = (found, Some(w as u32 * 64 + alone[found as usize].trailing_zeros()));
                if found == level {
                    break;
                }
            }
        }
        place
    }

    pub fn minus(&self, other: &Self) -> Self {
        let mut out = *self;
        for w in 0..Self::WORDS {
            out.words[w] &= !other.words[w];
        }
        out
    }

    pub fn complement(&self) -> Self {
        Self::ALL.minus(self)
    }
}
