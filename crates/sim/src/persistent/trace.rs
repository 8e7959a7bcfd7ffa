//! A heap's calls on its medium: counters, flush addresses, and modelled time.
//!
//! **From.** NVAlloc §3.1: the reflush distance counts distinct lines flushed since the line's last
//! flush; below 4 it costs 800 ns to 500 ns. §3.3: sequential is within an XPLine of 256 bytes or
//! to the next.
//! **Not here.** Bandwidth, and waits of threads for each other.

use craton_base::{LINE_BYTES, Line, Medium, Space, SpaceError};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

const XPLINE_BYTES: u64 = 256;
pub const REFLUSH_DISTANCES: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latency {
    pub reflush_ns: [u64; REFLUSH_DISTANCES],
    /// To the last flush's XPLine, or the next.
    pub sequential_ns: u64,
    pub random_ns: u64,
    /// Besides its flushes.
    pub fence_ns: u64,
}

impl Latency {
    /// The mean, 650 ns, is 3 times a random and 7 times a sequential write.
    pub const PAPER: Self = Self { reflush_ns: [800, 700, 600, 500], sequential_ns: 93, random_ns: 217, fence_ns: 0 };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    pub stores: u64,
    pub line_stores: u64,
    /// Line stores do not count.
    pub flushes: u64,
    pub fences: u64,
    /// Of lines not stored to; a counting wrapper cannot see them.
    pub clean_flushes: u64,
    /// Flushes and line stores, by distance.
    pub reflushes: [u64; REFLUSH_DISTANCES],
    /// To the last XPLine or the next.
    pub sequential: u64,
    pub random: u64,
    /// Summed over threads.
    pub modelled_ns: u64,
}

#[derive(Debug, Default)]
struct OfThread {
    /// The last flushed first.
    recent: Vec<u64>,
    xpline: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Trace {
    latency: Latency,
    pub(super) counters: Counters,
    threads: HashMap<ThreadId, OfThread>,
    first: Vec<u64>,
    keep_first: usize,
    by_line: BTreeMap<u64, u64>,
}

impl Trace {
    pub(super) fn new(latency: Latency) -> Self {
        let (counters, threads) = (Counters::default(), HashMap::new());
        Self { latency, counters, threads, first: Vec::new(), keep_first: 1000, by_line: BTreeMap::new() }
    }

    pub(super) fn store_line(&mut self, at: u64) {
        self.counters.line_stores += 1;
        self.write_back(at);
    }

    pub(super) fn flush(&mut self, at: u64) {
        self.counters.flushes += 1;
        self.write_back(at);
    }

    pub(super) fn fence(&mut self) {
        self.counters.fences += 1;
        self.counters.modelled_ns += self.latency.fence_ns;
    }

    fn write_back(&mut self, at: u64) {
        let (line, xpline) = (at / LINE_BYTES, at / XPLINE_BYTES);
        let of_thread = self.threads.entry(thread::current().id()).or_default();
        let distance = of_thread.recent.iter().position(|recent| *recent == line);
        of_thread.recent.retain(|recent| *recent != line);
        of_thread.recent.insert(0, line);
        of_thread.recent.truncate(REFLUSH_DISTANCES);
        let last = of_thread.xpline.replace(xpline);
        let is_sequential = last.is_some_and(|last| xpline == last || xpline == last + 1);
        let Counters { reflushes, sequential, random, modelled_ns, .. } = &mut self.counters;
        let (counter, ns) = match distance {
            Some(distance) => (&mut reflushes[distance], self.latency.reflush_ns[distance]),
            None if is_sequential => (sequential, self.latency.sequential_ns),
            None => (random, self.latency.random_ns),
        };
        *counter += 1;
        *modelled_ns += ns;
        if self.first.len() < self.keep_first {
            self.first.push(line * LINE_BYTES);
        }
        *self.by_line.entry(line).or_default() += 1;
    }

    pub(super) fn reset(&mut self, keep_first: usize) {
        self.counters = Counters::default();
        (self.first, self.by_line, self.keep_first) = (Vec::new(), BTreeMap::new(), keep_first);
    }

    pub(super) fn first_flushes(&self) -> Vec<u64> {
        self.first.clone()
    }

    pub(super) fn histogram(&self, bytes: u64) -> BTreeMap<u64, u64> {
        let mut parts = BTreeMap::new();
        for (line, count) in &self.by_line {
            *parts.entry(line * LINE_BYTES / bytes * bytes).or_default() += count;
        }
        parts
    }
}

#[derive(Debug)]
pub struct Counted<M> {
    medium: M,
    trace: Mutex<Trace>,
}

impl<M: Medium> Counted<M> {
    pub fn new(medium: M, latency: Latency) -> Self {
        Self { medium, trace: Mutex::new(Trace::new(latency)) }
    }

    fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn inner(&self) -> &M {
        &self.medium
    }

    pub fn counters(&self) -> Counters {
        self.trace().counters
    }

    /// The offsets of the first flushes.
    pub fn reset(&self, keep_first: usize) {
        self.trace().reset(keep_first);
    }

    pub fn first_flushes(&self) -> Vec<u64> {
        self.trace().first_flushes()
    }

    /// In each `bytes` bytes.
    pub fn histogram(&self, bytes: u64) -> BTreeMap<u64, u64> {
        self.trace().histogram(bytes)
    }
}

impl<M: Medium> Medium for Counted<M> {
    const FLUSHES: bool = M::FLUSHES;

    fn len(&self) -> u64 {
        self.medium.len()
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        self.medium.word(at)
    }

    fn store(&self, at: u64, value: u64) {
        self.trace().counters.stores += 1;
        self.medium.store(at, value);
    }

    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        self.trace().counters.stores += 1;
        self.medium.update(at, set, clear)
    }

    fn store_line(&self, at: u64, line: &Line) {
        self.trace().store_line(at);
        self.medium.store_line(at, line);
    }

    fn flush(&self, at: u64) {
        self.trace().flush(at);
        self.medium.flush(at);
    }

    fn fence(&self) {
        self.trace().fence();
        self.medium.fence();
    }

    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.medium.words(at, words)
    }

    fn array(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.medium.array(at, words)
    }

    fn half_array(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        self.medium.half_array(at, words)
    }

    fn stored(&self, at: u64) {
        self.trace().counters.stores += 1;
        self.medium.stored(at);
    }
}

impl<M: Space> Space for Counted<M> {
    fn resize(&self, len: u64) -> Result<(), SpaceError> {
        self.medium.resize(len)
    }

    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.medium.discard(at, len)
    }

    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        self.medium.allocate(at, len)
    }

    fn limit(&self) -> u64 {
        self.medium.limit()
    }
}

#[cfg(test)]
mod tests;
