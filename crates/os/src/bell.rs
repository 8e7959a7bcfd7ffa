//! A bell that ends a thread's timed sleep early.
//!
//! **State.** The lower half: 0 silent · 1 rung, until [`Bell::silence`] · 2 nudged. Another
//! process cannot wake a sleeper: it writes a byte of the upper half and interrupts the system
//! call, which restarts and finds the bell not silent.

use crate::futex;
use craton_base::atomic::{AtomicU32, Ordering};

const OURS: u32 = 0xffff;

#[derive(Debug)]
pub struct Bell {
    rung: AtomicU32,
}

impl Bell {
    pub const fn new() -> Self {
        Self { rung: AtomicU32::new(0) }
    }

    /// Ends each sleep at once until silenced.
    pub fn ring(&self) {
        // ORDERING: pairs with the Acquire in `is_rung`: publishes the ringer's writes.
        self.rung.store(1, Ordering::Release);
        futex::wake(&self.rung, i32::MAX as u32);
    }

    /// Ends one sleep, this one or the next.
    pub fn nudge(&self) {
        let mut now = self.rung.load(Ordering::Relaxed);
        while now & OURS == 0 {
            match self.rung.compare_exchange(now, now | 2, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return futex::wake(&self.rung, i32::MAX as u32),
                Err(other) => now = other,
            }
        }
    }

    /// Where another process writes a byte to nudge.
    pub const fn outside(this: *const Self) -> *const u8 {
        this.cast::<u8>().wrapping_add(3)
    }

    pub fn silence(&self) {
        self.rung.store(0, Ordering::Relaxed);
    }

    pub fn is_rung(&self) -> bool {
        // ORDERING: pairs with the Release in `ring`.
        self.rung.load(Ordering::Acquire) & OURS == 1
    }

    /// May end early; `true` if rung.
    pub fn wait_ns(&self, ns: u64) -> bool {
        let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
        self.sleep(&time)
    }

    /// Until rung or nudged; as [`Bell::wait_ns`].
    pub fn wait(&self) -> bool {
        self.sleep(core::ptr::null())
    }

    fn sleep(&self, time: *const libc::timespec) -> bool {
        futex::wait(&self.rung, 0, time);
        let now = self.rung.load(Ordering::Relaxed);
        if now & OURS != 1 && now != 0 {
            let _ = self.rung.compare_exchange(now, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.is_rung()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
