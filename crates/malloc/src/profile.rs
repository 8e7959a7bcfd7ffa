//! The heap profile: who holds the memory, by stack, from samples.
//!
//! **What.** Of each 512 KiB that the process requests, chance chooses a byte; its object is a
//! *sample* and stands for all of them. Samples are counted by stack: live, allocated so far, live
//! at the high-water mark, and freed soon. `craton profile` reads the table in the process, in a
//! core file, or in the file that the process writes at its exit.
//!
//! **State.**
//! ```text
//!  refill, flush ─ requests to come × size ─► thread's countdown ends ─► its cache awaits the class's sample
//!  the request that ends it ─► its page has a sample (heap/sampled.rs) ─► tables: site, sample
//!  large request ─► the process's countdown ends ─► tables, likewise
//!  request without a thread cache ─► thread's part ends ─► the process's countdown, likewise
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
//! counted. Requests that a thread cache serves beyond those that it counted ahead are seen at the
//! sites that allocate next. Not seen: small objects of Rust's global allocator, which frees them
//! by size alone; objects of caches, named heaps and of the debugging kit.
//!
//! **Cost.** No instruction on the fast paths. Refill, flush: some 20. Sample: some µs; by default
//! the interval doubles while samples take more than a 400th of the time, or are many.
//!
//! **Unsafe.** Releases a lock that a fork took.

mod chance;
mod due;
mod pace;
pub(crate) mod tables;

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use craton_heap::hooks::Countdown;
use craton_heap::size_class::CLASSES;
use due::Due;
use pace::OFF;
pub(crate) use pace::{AUTO, Pace};
use tables::Tables;

/// The process's first countdowns: the points within are drawn at their end, so that small programs
/// touch no code for samples. More than a read buffer of 256 KiB.
const FIRST: i64 = 320 << 10;

/// Intervals within an excess whose points are not drawn.
const GROUP: u64 = 8;

/// Countdowns of thread caches, and the process's.
const CACHES: usize = 0;
const PROCESS: usize = 1;

/// Bytes by which a thread without a cache counts the process down, at their end. Their number is
/// drawn, around this mean: so no thread is too short to be seen, and no pattern of requests meets
/// the ends at the same place. At smaller intervals one interval.
const PART: u64 = 32 << 10;

/// Points of the process's countdown, in the request that ended it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Points {
    pub(crate) bytes: u64,
    interval: u64,
}

impl Points {
    /// Of one large object.
    pub(crate) fn weight(&self, size: usize) -> u64 {
        chance::weight(size as u64, self.interval)
    }
}

pub(crate) struct Profile {
    pub(crate) pace: Pace,
    pub(crate) tables: Tables,
    pub(crate) due: Due,
    /// Of large requests, and of those without a thread cache; less [`FIRST`].
    countdown: AtomicI64,
    /// What its end stands for.
    ends_for: AtomicU64,
    /// Whether the first countdown has ended, of [`CACHES`] and of [`PROCESS`].
    has_begun: [AtomicBool; 2],
    /// Bytes that the next sample of a class stands for, too.
    pending: [AtomicU64; CLASSES + 1],
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
            ends_for: AtomicU64::new(0),
            has_begun: [const { AtomicBool::new(false) }; 2],
            pending: [const { AtomicU64::new(0) }; CLASSES + 1],
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
        // Whole groups need no chance.
        let (mut rest, mut points) = ((excess % (GROUP * interval)) as i64, 1 + excess / (GROUP * interval) * GROUP);
        loop {
            let gap = self.pace.gap(interval);
            if gap > rest {
                return (gap - rest, points);
            }
            (rest, points) = (rest - gap, points + 1);
        }
    }

    pub(crate) fn add_pending(&self, class: usize, bytes: u64) {
        if bytes > 0 {
            self.pending[class].fetch_add(bytes, Relaxed);
        }
    }

    pub(crate) fn is_pending(&self, class: usize) -> bool {
        self.pending[class].load(Relaxed) != 0
    }

    /// Bytes that the class's next sample stands for.
    pub(crate) fn take_pending(&self, class: usize) -> u64 {
        // The usual case needs no exchange.
        if self.is_pending(class) { self.pending[class].swap(0, Relaxed) } else { 0 }
    }

    /// Of a new thread cache, and after the option has changed; `is_first` of the process.
    pub(crate) fn first_countdown(&self, is_first: bool) -> Countdown {
        match is_first && !self.has_begun[CACHES].load(Relaxed) {
            true => Countdown { left: FIRST, bytes: 0 },
            false => self.drawn(self.pace.interval()),
        }
    }

    #[inline(never)]
    fn drawn(&self, interval: Option<u64>) -> Countdown {
        interval.map_or(OFF, |interval| Countdown { left: self.pace.gap(interval), bytes: interval })
    }

    /// A cache's countdown ended: the next, and what their sample stands for.
    pub(crate) fn count_ended(&self, ended: Countdown) -> (Countdown, u64) {
        let next = self.count_ended_of(CACHES, ended);
        self.has_begun[CACHES].store(true, Relaxed);
        next
    }

    fn count_ended_of(&self, which: usize, ended: Countdown) -> (Countdown, u64) {
        let is_first = !self.has_begun[which].load(Relaxed);
        self.pace.interval().map_or((OFF, 0), |interval| {
            // The first one's end is no point.
            let passed = ended.left.unsigned_abs() + if is_first { FIRST as u64 } else { 0 };
            let (left, points) = self.draw(passed, interval);
            let bytes = if is_first { 0 } else { ended.bytes };
            (Countdown { left, bytes: interval }, bytes + (points - 1) * interval)
        })
    }

    /// A part ended `-left` bytes ago, or a thread begins (`None`) with a request of `size` bytes:
    /// the next part, and what the request stands for as a sample.
    pub(crate) fn count_part(&self, left: Option<i64>, size: u64) -> (i64, u64) {
        let part = self.pace.interval().map_or(PART, |interval| interval.min(PART)).max(2);
        let left = left.unwrap_or_else(|| (self.pace.random() % part) as i64 - size as i64);
        // Of small parts there may be many.
        let whole = left.min(0).unsigned_abs() / part;
        let (mut parts, mut left) = (whole, left + (whole * part) as i64);
        while left < 0 {
            parts += 1;
            left += (part / 2 + self.pace.random() % part) as i64;
        }
        let bytes = if parts > 0 { self.count_down(parts * part).map_or(0, |points| points.bytes) } else { 0 };
        (left, bytes)
    }

    /// The process's countdown, if these bytes end it.
    #[inline]
    pub(crate) fn count_down(&self, bytes: u64) -> Option<Points> {
        let bytes = bytes as i64;
        let mut now = self.countdown.load(Relaxed);
        loop {
            let counted = if now.wrapping_add(FIRST) < bytes {
                self.end(now, bytes)
            } else {
                self.countdown.compare_exchange_weak(now, now - bytes, Relaxed, Relaxed).map(|_| None)
            };
            match counted {
                Ok(points) => return points,
                Err(other) => now = other,
            }
        }
    }

    /// A request that ends the countdown draws the next one at the same time, so that it stands for
    /// its own bytes alone. Error: the countdown, which has changed.
    #[cold]
    fn end(&self, now: i64, bytes: i64) -> Result<Option<Points>, i64> {
        let drawn = self.ends_for.load(Relaxed);
        let ended = Countdown { left: now + FIRST - bytes, bytes: drawn };
        let (next, all) = self.count_ended_of(PROCESS, ended);
        self.countdown.compare_exchange(now, next.left - FIRST, Relaxed, Relaxed)?;
        self.has_begun[PROCESS].store(true, Relaxed);
        self.ends_for.store(next.bytes, Relaxed);
        let interval = if drawn > 0 { drawn } else { next.bytes };
        Ok((all > 0).then_some(Points { bytes: all, interval }))
    }

    /// In a fork's child.
    pub(crate) fn forked(&self) {
        self.pace.forked();
        if self.has_begun[PROCESS].load(Relaxed) {
            self.redraw();
        }
    }

    fn redraw(&self) {
        let Countdown { left, bytes } = self.drawn(self.pace.interval());
        self.ends_for.store(bytes, Relaxed);
        self.countdown.store(left - FIRST, Relaxed);
    }

    /// By the option: [`AUTO`], 0 for off, or bytes between two samples. Thread caches must draw
    /// their countdowns again.
    pub(crate) fn ask(&self, bytes: u64) {
        self.pace.ask(bytes);
        self.has_begun.iter().for_each(|begun| begun.store(true, Relaxed));
        self.redraw();
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
