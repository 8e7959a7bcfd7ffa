//! Parts of the medium that its users hold as arrays, and store to past it; it records changes at
//! each event: see [`Medium::stored`](craton_base::Medium::stored).

use super::{LINE_BYTES, PAGE_BYTES};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const LINE: usize = LINE_BYTES as usize;

enum Kept {
    Words(Vec<AtomicU64>),
    Halves(Vec<AtomicU32>),
}

pub(super) struct Array {
    range: Range<u64>,
    /// A line longer: the array begins with the first aligned word.
    kept: Kept,
    next: Link,
}

type Link = OnceLock<Box<Array>>;

pub(super) struct Arrays {
    first: Link,
    /// A bit for each page of the medium with a part of an array: most loads are elsewhere.
    pages: Box<[AtomicU64]>,
}

fn aligned<T>(list: &[T]) -> &[T] {
    let first = list.as_ptr().addr();
    &list[(first.next_multiple_of(LINE) - first) / size_of::<T>()..]
}

impl Array {
    pub(super) fn begin(&self) -> u64 {
        self.range.start
    }

    pub(super) fn words(&self) -> Option<&[AtomicU64]> {
        if let Kept::Words(words) = &self.kept { Some(aligned(words)) } else { None }
    }

    pub(super) fn halves(&self) -> Option<&[AtomicU32]> {
        if let Kept::Halves(halves) = &self.kept { Some(aligned(halves)) } else { None }
    }

    pub(super) fn load(&self, at: u64) -> u64 {
        let word = ((at - self.range.start) / 8) as usize;
        // ORDERING: pairs with the stores of the array's user.
        match (self.words(), self.halves()) {
            (Some(words), _) => words[word].load(Ordering::Acquire),
            (_, Some(halves)) => {
                let half = |at: usize| u64::from(halves[at].load(Ordering::Acquire));
                half(2 * word) | half(2 * word + 1) << 32
            }
            _ => unreachable!("an array has words or halves"),
        }
    }

    pub(super) fn zero(&self, range: &Range<u64>) {
        for at in (self.range.start.max(range.start)..self.range.end.min(range.end)).step_by(8) {
            let word = ((at - self.range.start) / 8) as usize;
            // ORDERING: pairs with `load`.
            match (self.words(), self.halves()) {
                (Some(words), _) => words[word].store(0, Ordering::Release),
                (_, Some(halves)) => (0..2).for_each(|i| halves[2 * word + i].store(0, Ordering::Release)),
                _ => {}
            }
        }
    }
}

impl Arrays {
    pub(super) fn new(limit: u64) -> Self {
        let words = limit.div_ceil(64 * PAGE_BYTES);
        Self { first: Link::new(), pages: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Array> {
        std::iter::successors(self.first.get(), |array| array.next.get()).map(|array| &**array)
    }

    pub(super) fn find(&self, at: u64) -> Option<&Array> {
        let page = at / PAGE_BYTES;
        // ORDERING: pairs with `get`: a thread that sees the bit sees the array.
        let pages = self.pages.get(page as usize / 64)?.load(Ordering::Acquire);
        if pages >> (page % 64) & 1 == 0 {
            return None;
        }
        self.iter().find(|array| array.range.contains(&at))
    }

    pub(super) fn get(&self, at: u64, bytes: u64, are_halves: bool, load: impl Fn(u64) -> u64) -> &Array {
        let range = at..(at + bytes).next_multiple_of(LINE_BYTES);
        let clash = |array: &&Array| array.range.start < range.end && range.start < array.range.end;
        if let Some(there) = self.iter().find(clash) {
            assert!(there.range == range && there.halves().is_some() == are_halves, "arrays overlap at {at}");
            return there;
        }
        assert!(at.is_multiple_of(LINE_BYTES), "no array at {at}");
        let list = range.clone().step_by(8).map(load);
        let kept = if are_halves {
            let mut halves: Vec<_> = (0..(range.end - at) / 4 + 16).map(|_| AtomicU32::new(0)).collect();
            let skipped = halves.len() - aligned(&halves).len();
            list.enumerate().for_each(|(i, word)| {
                *halves[skipped + 2 * i].get_mut() = word as u32;
                *halves[skipped + 2 * i + 1].get_mut() = (word >> 32) as u32;
            });
            Kept::Halves(halves)
        } else {
            let mut words: Vec<_> = (0..(range.end - at) / 8 + 8).map(|_| AtomicU64::new(0)).collect();
            let skipped = words.len() - aligned(&words).len();
            list.enumerate().for_each(|(i, word)| *words[skipped + i].get_mut() = word);
            Kept::Words(words)
        };
        let mut link = &self.first;
        while let Some(array) = link.get() {
            link = &array.next;
        }
        // Two threads at once are the test's fault.
        let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        let new = Box::new(Array { range, kept, next: OnceLock::new() });
        assert!(link.set(new).is_ok(), "two threads make an array");
        // ORDERING: pairs with `find`.
        for page in pages {
            self.pages[page as usize / 64].fetch_or(1 << (page % 64), Ordering::Release);
        }
        link.get().expect("it was just set")
    }
}
