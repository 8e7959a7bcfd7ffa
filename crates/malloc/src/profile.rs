//! The heap profile: who holds the memory, by stack, from samples.
//!
//! **What.** Of each 512 KiB that the process requests, chance chooses a byte; its object is a
//! *sample* and stands for all of them. Samples are counted by stack: live, allocated so far, live
//! at the high-water mark, and freed soon. `craton profile` reads the table in the process, in a
//! core file, or in the file that the process writes at its exit.
//!
//! **State.**
//! ```text
//!  refill ─ pops × size ─► thread's countdown ends ─► pending[class], list armed (sampling.rs)
//!  request finds the armed list empty ─► its page has a sample (heap/sampled.rs) ─► tables: site, sample
//!  large request ─► the process's countdown ends ─► tables, likewise
//!  its free leaves the fast path ─► perhaps a sample, by a hash ─► the sample leaves the live ones
//! ```
//! **Units.** Estimates in bytes and objects. A class's sample stands for the intervals that ended
//! since the last one, 1 on average for each interval of requested bytes. A large sample of s bytes
//! stands for s / (1 − exp(−s / interval)).
//!
//! **Threads.** The tables have one lock, under which no other is taken; a fork takes it. Counts
//! before it are statistical. A signal handler inside of a request takes no sample.
//!
//! **Failure.** Without room in the tables, or without memory for them, samples are dropped and
//! counted. Not seen: objects that a thread cache hands out again between two slow requests count
//! at the next one, at the sites that then allocate; small objects of Rust's global allocator,
//! which frees them by size alone; objects of caches, named heaps and of the debugging kit.
//!
//! **Cost.** No instruction on the fast paths. Refill: a subtraction. Sample: some µs; by default
//! the interval doubles while samples take more than a 400th of the time, or are many.
//!
//! **Unsafe.** Releases a lock that a fork took.

mod chance;
mod due;
mod pace;
pub(crate) mod tables;

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use craton_heap::size_class::CLASSES;
use due::Due;
use pace::OFF_COUNTDOWN;
pub(crate) use pace::{AUTO, Pace};
use tables::Tables;

/// The process's first countdowns: the points within are drawn at their end, so that small programs
/// touch no code for samples. More than a read buffer of 256 KiB.
const FIRST: i64 = 320 << 10;

/// Countdowns of thread caches, and the process's.
const CACHES: usize = 0;
const PROCESS: usize = 1;

pub(crate) struct Profile {
    pub(crate) pace: Pace,
    pub(crate) tables: Tables,
    pub(crate) due: Due,
    /// Of large requests, and of those of per-CPU caches; less [`FIRST`].
    countdown: AtomicI64,
    /// Whether the first countdown has ended, of [`CACHES`] and of [`PROCESS`].
    has_begun: [AtomicBool; 2],
    /// Bytes that the next sample of a class stands for; whether there are any.
    pending: [AtomicU64; CLASSES + 1],
    is_pending: AtomicBool,
    /// The program frees small objects by size alone.
    pub(crate) trusts: AtomicBool,
}

impl Profile {
    /// Where the tables' address lies, for readers of another process.
    pub(crate) const AT: usize = offset_of!(Self, tables) + Tables::AT;

    pub(crate) const fn new() -> Self {
        Self {
            pace: Pace::new(),
            tables: Tables::new(),
            due: Due::new(),
            countdown: AtomicI64::new(0),
            has_begun: [const { AtomicBool::new(false) }; 2],
            pending: [const { AtomicU64::new(0) }; CLASSES + 1],
            is_pending: AtomicBool::new(false),
            trusts: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.tables.lock_for_fork(nested);
    }

    /// # Safety
    /// As [`craton_os::Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.tables.release_after_fork() };
    }

    /// The next countdown, and the points within the excess.
    fn draw(&self, excess: u64, interval: u64) -> (i64, u64) {
        let (mut rest, mut points) = (excess as i64, 1 + excess / (64 * interval) * 64);
        if points > 1 {
            rest = (excess % interval) as i64;
        }
        loop {
            let gap = self.pace.gap(interval);
            if gap > rest {
                return (gap - rest, points);
            }
            (rest, points) = (rest - gap, points + 1);
        }
    }

    pub(crate) fn add_pending(&self, class: usize, bytes: u64) {
        self.pending[class].fetch_add(bytes, Relaxed);
        self.is_pending.store(true, Relaxed);
    }

    /// Bytes that the class's next sample stands for.
    pub(crate) fn take_pending(&self, class: usize) -> u64 {
        let bytes = self.pending[class].swap(0, Relaxed);
        let others = self.pending.iter().any(|bytes| bytes.load(Relaxed) != 0);
        self.is_pending.store(others, Relaxed);
        bytes
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.load(Relaxed)
    }

    pub(crate) fn is_due(&self, class: usize) -> bool {
        self.pending[class].load(Relaxed) != 0
    }

    /// Of a new thread cache, and after the option has changed; `is_first` of the process.
    pub(crate) fn first_countdown(&self, is_first: bool) -> i64 {
        match is_first && !self.has_begun[CACHES].load(Relaxed) {
            true => FIRST,
            false => self.drawn(self.pace.interval()),
        }
    }

    #[inline(never)]
    fn drawn(&self, interval: Option<u64>) -> i64 {
        interval.map_or(OFF_COUNTDOWN, |interval| self.pace.gap(interval))
    }

    /// A cache's countdown ended `excess` bytes ago: the next, and what their sample stands for.
    pub(crate) fn count_ended(&self, excess: u64) -> (i64, u64) {
        self.count_ended_of(CACHES, excess)
    }

    fn count_ended_of(&self, which: usize, excess: u64) -> (i64, u64) {
        let begun = &self.has_begun[which];
        let is_first = !begun.load(Relaxed) && !begun.swap(true, Relaxed);
        self.pace.interval().map_or((OFF_COUNTDOWN, 0), |interval| {
            // The first one's end is no point.
            let passed = if is_first { FIRST as u64 + excess } else { excess };
            let (next, points) = self.draw(passed, interval);
            (next, (points - u64::from(is_first)) * interval)
        })
    }

    /// The process's countdown; what a sample stands for if it ended.
    #[inline]
    pub(crate) fn count_down(&self, bytes: u64) -> Option<u64> {
        let left = self.countdown.fetch_sub(bytes as i64, Relaxed).wrapping_sub(bytes as i64).wrapping_add(FIRST);
        if left >= 0 { None } else { self.ended(left) }
    }

    #[cold]
    fn ended(&self, left: i64) -> Option<u64> {
        let (next, bytes) = self.count_ended_of(PROCESS, left.unsigned_abs());
        self.countdown.store(next - FIRST, Relaxed);
        (bytes > 0).then_some(bytes)
    }

    /// Bytes that a large sample of a size stands for.
    pub(crate) fn weight(&self, size: usize) -> u64 {
        self.pace.interval().map_or(0, |interval| chance::weight(size as u64, interval))
    }

    /// By the option: [`AUTO`], 0 for off, or bytes between two samples. Thread caches must draw
    /// their countdowns again.
    pub(crate) fn ask(&self, bytes: u64) {
        self.pace.ask(bytes);
        self.has_begun.iter().for_each(|begun| begun.store(true, Relaxed));
        self.countdown.store(self.drawn(self.pace.interval()) - FIRST, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
