//! When the file of the profile is written before the exit: the options `profile_every` and
//! `profile_growth`.
//!
//! **What.** Each sample asks. A process without samples has no other profile than before.
//!
//! **Threads.** A comparison and exchange decides which of two samples writes.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) struct Due {
    /// 0: never.
    every_ns: AtomicU64,
    next_ns: AtomicU64,
    /// 0: never.
    growth: AtomicU64,
    /// Live bytes at the last file.
    written: AtomicU64,
    files: AtomicU64,
}

impl Due {
    pub(crate) const fn new() -> Self {
        Self {
            every_ns: AtomicU64::new(0),
            next_ns: AtomicU64::new(0),
            growth: AtomicU64::new(0),
            written: AtomicU64::new(0),
            files: AtomicU64::new(0),
        }
    }

    pub(crate) fn every_ns(&self) -> u64 {
        self.every_ns.load(Relaxed)
    }

    pub(crate) fn set_every(&self, every_ns: u64, now_ns: u64) {
        self.next_ns.store(now_ns.saturating_add(every_ns), Relaxed);
        self.every_ns.store(every_ns, Relaxed);
    }

    pub(crate) fn growth(&self) -> u64 {
        self.growth.load(Relaxed)
    }

    pub(crate) fn set_growth(&self, bytes: u64) {
        self.growth.store(bytes, Relaxed);
    }

    /// The number of a new file, from 1 on.
    pub(crate) fn count_file(&self) -> u64 {
        self.files.fetch_add(1, Relaxed) + 1
    }

    /// Whether the caller is to write a file. `live`: bytes by all samples; asked if they count.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64, live: impl FnOnce() -> u64) -> bool {
        let (every, growth) = (self.every_ns(), self.growth());
        let won = |at: &AtomicU64, old, new| at.compare_exchange(old, new, Relaxed, Relaxed).is_ok();
        let next = self.next_ns.load(Relaxed);
        if every > 0 && now_ns >= next && won(&self.next_ns, next, now_ns.saturating_add(every)) {
            return true;
        }
        if growth == 0 {
            return false;
        }
        let (live, written) = (live(), self.written.load(Relaxed));
        live >= written.saturating_add(growth) && won(&self.written, written, live)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
