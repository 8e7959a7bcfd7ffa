//! The lock of a leaf, and the version by which a reader notices a writer.
//!
//! **State.** Bit 0 locked, bit 1 retired, above it the version.
//!
//! **Threads.** A writer sets bit 0, changes the leaf, and stores the next version. A reader stores
//! nothing. A retired leaf stays locked: its range belongs to other leaves, so search again.

use craton_base::atomic::{AtomicU64, Ordering, spin};
use std::sync::atomic::fence;

const LOCKED: u64 = 1;
const RETIRED: u64 = 2;
const STEP: u64 = 4;

const SPINS: u32 = 200;

#[derive(Default)]
pub struct Latch(AtomicU64);

pub struct Locked<'a> {
    latch: &'a Latch,
    version: u64,
}

impl Latch {
    /// `None`: retired.
    #[inline]
    pub fn version(&self) -> Option<u64> {
        // ORDERING: pairs with the release in `drop`.
        let seen = self.0.load(Ordering::Acquire);
        if seen & (LOCKED | RETIRED) == 0 { Some(seen) } else { self.wait() }
    }

    /// No writer has come since `version`.
    #[inline]
    pub fn is_same(&self, version: u64) -> bool {
        // ORDERING: pairs with the release fence in `try_lock`: earlier loads saw nothing of a
        // writer, or the load below sees its lock.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version
    }

    /// `None`: retired.
    pub fn lock(&self) -> Option<Locked<'_>> {
        loop {
            let version = self.version()?;
            if let Some(locked) = self.try_lock(version) {
                return Some(locked);
            }
        }
    }

    /// `None`: locked or retired.
    pub fn lock_now(&self) -> Option<Locked<'_>> {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & (LOCKED | RETIRED) == 0 { self.try_lock(seen) } else { None }
    }

    fn try_lock(&self, version: u64) -> Option<Locked<'_>> {
        // ORDERING: acquire pairs with the release in `drop`.
        self.0.compare_exchange(version, version | LOCKED, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // ORDERING: pairs with the acquire fence in `is_same`.
        fence(Ordering::Release);
        Some(Locked { latch: self, version })
    }

    #[cold]
    fn wait(&self) -> Option<u64> {
        let mut rounds = 0;
        loop {
            // ORDERING: pairs with the releases in `drop` and `retire`.
            let seen = self.0.load(Ordering::Acquire);
            if seen & RETIRED != 0 {
                return None;
            }
            if seen & LOCKED == 0 {
                return Some(seen);
            }
            rounds += 1;
            if rounds % SPINS == 0 {
                std::thread::yield_now();
            } else {
                spin();
            }
        }
    }
}

impl Locked<'_> {
    /// The leaf's successors can be found.
    pub fn retire(self) {
        // ORDERING: pairs with the acquire in `wait`.
        self.latch.0.store(self.version | LOCKED | RETIRED, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // ORDERING: pairs with the acquires in `version`, `wait` and `try_lock`.
        self.latch.0.store(self.version + STEP, Ordering::Release);
    }
}
