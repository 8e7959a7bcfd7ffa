//! A recurring event to wait for.
//!
//! A waiter reads the count, tests its condition, and sleeps until the count changes. The announcer
//! changes its state first; both sides test it under their lock.

use crate::futex;
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};

#[derive(Debug, Default)]
pub struct Event {
    times: AtomicU32,
}

impl Event {
    pub const fn new() -> Self {
        Self { times: AtomicU32::new(0) }
    }

    /// Modulo 2³².
    pub fn times(&self) -> u32 {
        self.times.load(Relaxed)
    }

    pub fn announce(&self) {
        self.times.fetch_add(1, Relaxed);
        futex::wake(&self.times, i32::MAX as u32);
    }

    /// Until the count exceeds `times`; perhaps less than `ns`.
    pub fn wait(&self, times: u32, ns: u64) {
        let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
        futex::wait(&self.times, times, &time);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
