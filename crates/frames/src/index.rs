//! Sets of trees, which find the next one in a few steps: a bit for each tree; above that a bit for
//! each nonzero word. All sets' words for 64 trees share two cache lines: CPUs on trees far apart
//! write to different lines.
//!
//! **Threads.** Users verify the tree. An upper bit may stay up for a zero word, but is never down
//! for long over a nonzero one: its clearer reads the word again.

use crate::word::Word;
use craton_base::atomic::AtomicU64;

const GROUP: usize = 16;
const LINE: usize = 8;

pub(crate) const fn words(trees: usize, sets: usize) -> usize {
    let groups = trees.div_ceil(64);
    groups * GROUP + (sets * groups.div_ceil(64)).next_multiple_of(LINE)
}

#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    /// Begins with this set's word of the first group.
    lower: &'a [AtomicU64],
    upper: &'a [AtomicU64],
    groups: usize,
}

impl<'a> Set<'a> {
    /// `place`: below [`GROUP`].
    pub(crate) fn new(words: &'a [AtomicU64], trees: usize, place: usize) -> Self {
        let groups = trees.div_ceil(64);
        let (lower, upper) = words.split_at(groups * GROUP);
        let each = groups.div_ceil(64);
        Self { lower: &lower[place..], upper: &upper[place * each..(place + 1) * each], groups }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &'a AtomicU64 {
        &self.lower[at * GROUP]
    }

    pub(crate) fn begin(&self, at: usize, trees: u64) {
        self.word(at).begin(trees);
        let (word, bit) = (&self.upper[at / 64], u64::from(trees != 0) << (at % 64));
        word.begin(if at.is_multiple_of(64) { bit } else { word.read() | bit });
    }

    pub(crate) fn has(&self, tree: usize) -> bool {
        self.word(tree / 64).read() >> (tree % 64) & 1 == 1
    }

    pub(crate) fn insert(&self, tree: usize) {
        let at = tree / 64;
        if self.word(at).or(1 << (tree % 64)) == 0 {
            let (word, bit) = (&self.upper[at / 64], 1 << (at % 64));
            if word.read() & bit == 0 {
                word.or(bit);
            }
        }
    }

    pub(crate) fn remove(&self, tree: usize) {
        self.word(tree / 64).and(!(1 << (tree % 64)));
    }

    #[cold]
    fn pass_over(&self, at: usize) {
        let (word, bit) = (&self.upper[at / 64], 1 << (at % 64));
        word.and(!bit);
        if self.word(at).read() != 0 {
            word.or(bit);
        }
    }

    pub(crate) fn set(&self, tree: usize, is_in: bool) {
        match (self.has(tree), is_in) {
            (false, true) => self.insert(tree),
            (true, false) => self.remove(tree),
            _ => {}
        }
    }

    /// Misses no tree that stays in the set.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + use<'a> {
        let set = *self;
        (0..set.groups).flat_map(move |at| {
            let mut trees = set.word(at).read();
            core::iter::from_fn(move || {
                let tree = (trees != 0).then(|| at * 64 + trees.trailing_zeros() as usize)?;
                trees &= trees - 1;
                Some(tree)
            })
        })
    }

    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        self.next_from(from).or_else(|| self.next_from(0).filter(|tree| *tree < from))
    }

    fn next_from(&self, from: usize) -> Option<usize> {
        let at = from / 64;
        if at >= self.groups {
            return None;
        }
        let word = self.word(at).read() & (u64::MAX << (from % 64));
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
            let word = self.word(at).read();
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            self.pass_over(at);
            next = at + 1;
            mask = u64::MAX << (next % 64);
        }
        None
    }
}
