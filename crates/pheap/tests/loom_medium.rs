//! A medium of loom's atomics, and the images that a crash can leave: all stores, or the least that
//! a power failure leaves. loom switches threads before a step alone, so a store and its copies are
//! one. Lines stored whole are no steps: recovery alone reads them.

use craton_base::atomic::{AtomicU64, Ordering};
use craton_base::loom::thread::{self, ThreadId};
use craton_base::{LINE_BYTES, LINE_WORDS, Line, Medium, Space, SpaceError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub type Image = Arc<[u64]>;

#[derive(Clone)]
pub struct ModelMedium<const FLUSHES: bool>(Arc<Inner>);

struct Inner {
    first: Image,
    lines: Box<[OnceLock<Box<[AtomicU64; LINE_WORDS]>>]>,
    copies: Mutex<Copies>,
}

/// A line's number, how many stores came before, its words.
type WrittenBack = (usize, u64, Line);

struct Copies {
    now: Vec<u64>,
    durable: Vec<u64>,
    stores: u64,
    /// Stores before the durable words of each line.
    versions: Vec<u64>,
    /// That each thread's next fence makes durable.
    flushed: HashMap<ThreadId, Vec<WrittenBack>>,
}

impl Copies {
    fn store(&mut self, at: u64, value: u64) {
        self.stores += 1;
        self.now[(at / 8) as usize] = value;
    }

    fn flush(&mut self, at: u64) {
        let line = (at / LINE_BYTES) as usize;
        let words = std::array::from_fn(|word| self.now[line * LINE_WORDS + word]);
        self.flushed.entry(thread::current().id()).or_default().push((line, self.stores, words));
    }

    fn fence(&mut self) {
        for (line, stores, words) in self.flushed.remove(&thread::current().id()).unwrap_or_default() {
            if stores >= self.versions[line] {
                self.versions[line] = stores;
                self.durable[line * LINE_WORDS..(line + 1) * LINE_WORDS].copy_from_slice(&words);
            }
        }
    }
}

impl<const FLUSHES: bool> ModelMedium<FLUSHES> {
    pub fn new(first: Image) -> Self {
        let lines = first.len() / LINE_WORDS;
        let copies = Copies {
            now: first.to_vec(),
            durable: first.to_vec(),
            stores: 0,
            versions: vec![0; lines],
            flushed: HashMap::new(),
        };
        Self(Arc::new(Inner {
            first,
            lines: (0..lines).map(|_| OnceLock::new()).collect(),
            copies: Mutex::new(copies),
        }))
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.0.copies.lock().unwrap()
    }

    /// Call while one thread runs.
    pub fn touch(&self, words: impl Iterator<Item = u64>) {
        words.for_each(|at| _ = self.word(at).load(Ordering::Relaxed));
    }

    /// Of the death of the process, and of a power failure.
    pub fn images(&self) -> Vec<Image> {
        let copies = self.copies();
        let durable = FLUSHES.then(|| copies.durable.as_slice().into());
        [Some(copies.now.as_slice().into()), durable].into_iter().flatten().collect()
    }
}

impl<const F: bool> Medium for ModelMedium<F> {
    const FLUSHES: bool = F;

    fn len(&self) -> u64 {
        8 * self.0.first.len() as u64
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        let (line, word) = ((at / LINE_BYTES) as usize, (at % LINE_BYTES / 8) as usize);
        let first = |word: usize| AtomicU64::new(self.0.first[line * LINE_WORDS + word]);
        &self.0.lines[line].get_or_init(|| Box::new(std::array::from_fn(first)))[word]
    }

    fn store(&self, at: u64, value: u64) {
        // ORDERING: as `Medium::store`.
        self.word(at).store(value, Ordering::Release);
        self.copies().store(at, value);
    }

    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        assert!(set == 0 || clear == 0, "the heap does not set and clear at once");
        // ORDERING: as `Medium::update`.
        let old = match clear {
            0 => self.word(at).fetch_or(set, Ordering::AcqRel),
            _ => self.word(at).fetch_and(!clear, Ordering::AcqRel),
        };
        self.copies().store(at, (old | set) & !clear);
        old
    }

    fn store_line(&self, at: u64, line: &Line) {
        let mut copies = self.copies();
        line.iter().enumerate().for_each(|(word, value)| copies.store(at + 8 * word as u64, *value));
        copies.flush(at);
    }

    fn flush(&self, at: u64) {
        self.copies().flush(at);
    }

    fn fence(&self) {
        self.copies().fence();
    }
}

impl<const F: bool> Space for ModelMedium<F> {
    fn resize(&self, _: u64) -> Result<(), SpaceError> {
        Err(SpaceError::Fixed)
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), SpaceError> {
        Err(SpaceError::Fixed)
    }

    fn limit(&self) -> u64 {
        self.len()
    }
}
