//! A recurring event to wait for.
//!
//! **What.** A waiter reads the event's count, tests its condition, and else sleeps until the count
//! changes: an event between test and sleep ends the sleep at once.
//! **Threads.** The announcer changes its state first; both sides test it under their lock.

use crate::futex;
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};

/// Has never happened. All zeros.
#[derive(Debug, Default)]
pub struct Event {
    times: AtomicU32,
}

impl Event {
    pub const fn new() -> Self {
        Self { times: AtomicU32::new(0) }
    }

    /// How often it has happened, modulo 2³².
    pub fn times(&self) -> u32 {
        self.times.load(Relaxed)
    }

    /// Announces the event: wakes all sleepers.
    pub fn announce(&self) {
        self.times.fetch_add(1, Relaxed);
        futex::wake(&self.times, i32::MAX as u32);
    }

    /// Sleeps until the count exceeds `times`, at most `ns` nanoseconds, perhaps less.
    pub fn wait(&self, times: u32, ns: u64) {
        let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
        futex::wait(&self.times, times, &time);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
