//! Records of what threads hold, which survive a kill. *The keeper*'s frames stay.
//!
//! ```text
//! line 0        threads that have begun
//! a line each   the thread's next act · operations done
//! a map each    a bit for each frame; the last map is the keeper's
//! ```
//! A thread's next act, from bit 0 on: kind 2 · order 6 · frame 56.
//!
//! *R1* A thread about to do nothing holds exactly the frames of its bits. *R2* About to *get* it
//! holds these; the result is unknown. *R3* It records *got* before it sets the frames' bits. *R4*
//! With a *place* in doubt it holds its other frames; these are free, allocated, or another
//! thread's.

use super::super::file::Shared;
use craton_base::atomic::{AtomicU64, Ordering};
use std::ops::Range;
use std::path::Path;

const LINE_WORDS: usize = 8;
pub const WORD_FRAMES: usize = u64::BITS as usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    Nothing,
    Getting(u32),
    Got(usize, u32),
    /// In doubt: to allocate or free.
    Place(usize, u32),
}

impl Doing {
    fn word(self) -> u64 {
        let (kind, frame, order) = match self {
            Self::Nothing => (0, 0, 0),
            Self::Getting(order) => (1, 0, order),
            Self::Got(frame, order) => (2, frame, order),
            Self::Place(frame, order) => (3, frame, order),
        };
        kind | u64::from(order) << 2 | (frame as u64) << 8
    }

    fn of(word: u64) -> Self {
        let (frame, order) = ((word >> 8) as usize, (word >> 2 & 0x3f) as u32);
        match word & 3 {
            0 => Self::Nothing,
            1 => Self::Getting(order),
            2 => Self::Got(frame, order),
            _ => Self::Place(frame, order),
        }
    }
}

pub struct Records {
    shared: Shared,
    threads: usize,
    frames: usize,
}

impl Records {
    pub fn create(path: &Path, frames: usize, threads: usize) -> Result<Self, String> {
        Ok(Self { shared: Shared::create(path, Self::words(frames, threads))?, threads, frames })
    }

    pub fn open(path: &Path, frames: usize, threads: usize) -> Result<Self, String> {
        Ok(Self { shared: Shared::open(path, Self::words(frames, threads))?, threads, frames })
    }

    fn words(frames: usize, threads: usize) -> usize {
        (threads + 1) * (LINE_WORDS + Self::map_words(frames))
    }

    fn map_words(frames: usize) -> usize {
        frames.div_ceil(WORD_FRAMES).next_multiple_of(LINE_WORDS)
    }

    /// Also *the keeper*'s number.
    pub fn threads(&self) -> usize {
        self.threads
    }

    pub fn frames(&self) -> usize {
        self.frames
    }

    pub fn begun(&self) -> &AtomicU64 {
        &self.shared.words()[0]
    }

    fn line(&self, thread: usize) -> &[AtomicU64] {
        assert!(thread < self.threads, "thread {thread} is none of {}", self.threads);
        &self.shared.words()[(thread + 1) * LINE_WORDS..][..LINE_WORDS]
    }

    pub fn map(&self, holder: usize) -> &[AtomicU64] {
        assert!(holder <= self.threads, "holder {holder} is none of {}", self.threads + 1);
        let words = Self::map_words(self.frames);
        &self.shared.words()[(self.threads + 1) * LINE_WORDS + holder * words..][..words]
    }

    pub fn set_doing(&self, thread: usize, doing: Doing) {
        store(&self.line(thread)[0], doing.word());
    }

    pub fn doing(&self, thread: usize) -> Doing {
        Doing::of(load(&self.line(thread)[0]))
    }

    pub fn count(&self, thread: usize) {
        let word = &self.line(thread)[1];
        store(word, load(word) + 1);
    }

    pub fn operations(&self) -> u64 {
        (0..self.threads).map(|thread| load(&self.line(thread)[1])).sum()
    }

    pub fn set(&self, holder: usize, frame: usize, order: u32, held: bool) {
        let map = self.map(holder);
        for (word, mask) in masks(frame..frame + (1 << order)) {
            let old = load(&map[word]);
            store(&map[word], if held { old | mask } else { old & !mask });
        }
    }

    pub fn holds_any(&self, holder: usize, frame: usize, order: u32) -> bool {
        let map = self.map(holder);
        masks(frame..frame + (1 << order)).any(|(word, mask)| load(&map[word]) & mask != 0)
    }

    /// By R1 to R4; returns the threads' unfinished acts.
    pub fn settle(&self) -> Vec<Doing> {
        let settle = |thread| {
            let doing = self.doing(thread);
            match doing {
                Doing::Got(frame, order) => self.set(thread, frame, order, true),
                Doing::Place(frame, order) => self.set(thread, frame, order, false),
                Doing::Nothing | Doing::Getting(_) => {}
            }
            self.set_doing(thread, Doing::Nothing);
            doing
        };
        (0..self.threads).map(settle).collect()
    }

    pub fn reset(&self) {
        store(self.begun(), 0);
        (0..self.threads).for_each(|thread| store(&self.line(thread)[1], 0));
    }
}

fn masks(frames: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = frames.start / WORD_FRAMES..frames.end.div_ceil(WORD_FRAMES);
    words.map(move |word| {
        let from = frames.start.saturating_sub(word * WORD_FRAMES);
        let to = (frames.end - word * WORD_FRAMES).min(WORD_FRAMES);
        (word, (u64::MAX >> (WORD_FRAMES - to)) & (u64::MAX << from))
    })
}

fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

fn store(word: &AtomicU64, value: u64) {
    // ORDERING: pairs with the end of the process: no store may be in the file without the earlier
    // ones.
    word.store(value, Ordering::Release);
}

#[cfg(test)]
mod tests;
