//! Sets of trees, which find the next one in a few steps at any zone size.
//!
//! **State.** A bit for each tree, and above that a bit for each word that is not zero.
//! **Threads.** A set is a hint: users verify the tree. An upper bit may stay up for a zero word,
//! but is never down for long over a nonzero one: its clearer reads the word again.

use crate::word::Word;
use craton_base::atomic::AtomicU64;

pub(crate) const fn words(trees: usize) -> usize {
    let lower = trees.div_ceil(64);
    lower + lower.div_ceil(64)
}

#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    lower: &'a [AtomicU64],
    upper: &'a [AtomicU64],
}

impl<'a> Set<'a> {
    pub(crate) fn new(words: &'a [AtomicU64], trees: usize) -> Self {
        let (lower, upper) = words.split_at(trees.div_ceil(64));
        Self { lower, upper }
    }

    /// Initialises words of the set in order from 0 on, before the set is shared.
    pub(crate) fn begin(&self, at: usize, trees: u64) {
        self.lower[at].begin(trees);
        let (word, bit) = (&self.upper[at / 64], u64::from(trees != 0) << (at % 64));
        word.begin(if at.is_multiple_of(64) { bit } else { word.read() | bit });
    }

    pub(crate) fn has(&self, tree: usize) -> bool {
        self.lower[tree / 64].read() >> (tree % 64) & 1 == 1
    }

    pub(crate) fn insert(&self, tree: usize) {
        let at = tree / 64;
        if self.lower[at].or(1 << (tree % 64)) == 0 {
            self.upper[at / 64].or(1 << (at % 64));
        }
    }

    pub(crate) fn remove(&self, tree: usize) {
        let (at, bit) = (tree / 64, 1 << (tree % 64));
        if self.lower[at].and(!bit) == bit {
            let (word, bit) = (&self.upper[at / 64], 1 << (at % 64));
            word.and(!bit);
            if self.lower[at].read() != 0 {
                word.or(bit);
            }
        }
    }

    pub(crate) fn set(&self, tree: usize, is_in: bool) {
        match (self.has(tree), is_in) {
            (false, true) => self.insert(tree),
            (true, false) => self.remove(tree),
            _ => {}
        }
    }

    /// All trees, read word by word, so that none is missed that stays in the set.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.lower.iter().enumerate().flat_map(|(at, word)| {
            let mut trees = word.read();
            core::iter::from_fn(move || {
                let tree = (trees != 0).then(|| at * 64 + trees.trailing_zeros() as usize)?;
                trees &= trees - 1;
                Some(tree)
            })
        })
    }

    /// The first tree from `from` on, wrapping around.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        self.next_from(from).or_else(|| self.next_from(0).filter(|tree| *tree < from))
    }

    fn next_from(&self, from: usize) -> Option<usize> {
        let at = from / 64;
        let word = self.lower.get(at)?.read() & (u64::MAX << (from % 64));
        if word != 0 {
            return Some(at * 64 + word.trailing_zeros() as usize);
        }
        let mut next = at + 1;
        let mut mask = u64::MAX << (next % 64);
        while let Some(upper) = self.upper.get(next / 64) {
            let seen = upper.read() & mask;
            if seen == 0 {
                (next, mask) = ((next / 64 + 1) * 64, u64::MAX);
                continue;
            }
            let at = next / 64 * 64 + seen.trailing_zeros() as usize;
            let word = self.lower[at].read();
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            next = at + 1;
            mask = u64::MAX << (next % 64);
        }
        None
    }
}
