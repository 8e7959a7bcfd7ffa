//! A lock of one word over the kernel's futex.
//!
//! **What.** Needs no initialisation, no memory and no C library, so that it works while the process is being set up,
//! and can be taken over a `fork`.
//!
//! **State.** 0 free · 1 held · 2 held, and somebody may sleep on it.
//!
//! **Threads.** A short spin, since holders leave within a microsecond; then sleep. Not fair, not re-entrant.
//!
//! **Unsafe.** Hands out `&mut T` to the one holder.

use crate::futex;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use craton_base::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
/// Turns of the spin before sleeping: about the length of a batch transfer.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// A value that one thread at a time may use.
pub struct Mutex<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The right to use the value; gives it up when dropped.
pub struct Guard<'a, T> {
    lock: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// A free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits until the value is free and takes it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.acquire();
        Guard { lock: self }
    }

    /// Takes the value if it is free, for those who hold a lock that somebody who holds this one may wait for.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // ORDERING: as in `acquire`.
        let taken = self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        // The guard is made only now: dropping one gives the lock up.
        taken.is_ok().then(|| Guard { lock: self })
    }

    /// Takes the lock for as long as a `fork` lasts; [`Mutex::release_after_fork`] gives it up.
    pub fn hold_for_fork(&self) {
        self.acquire();
    }

    /// Gives up a lock taken by [`Mutex::hold_for_fork`], in the parent and in the child.
    ///
    /// # Safety
    /// The calling thread (or, in the child, the thread it is a copy of) holds the lock through `hold_for_fork`.
    pub unsafe fn release_after_fork(&self) {
        self.release();
    }

    #[inline]
    fn acquire(&self) {
        // ORDERING: Acquire pairs with the Release swap in `release`: what the last holder wrote is seen.
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.acquire_slowly();
        }
    }

    #[cold]
    fn acquire_slowly(&self) {
        for _ in 0..SPINS {
            core::hint::spin_loop();
            // ORDERING: Acquire pairs with the Release swap in `release`.
            if self.state.load(Ordering::Relaxed) == FREE
                && self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return;
            }
        }
        // From here on the lock is taken as contended: we cannot know whether others sleep too.
        // ORDERING: Acquire pairs with the Release swap in `release`.
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex::wait(&self.state, CONTENDED, core::ptr::null());
        }
    }

    #[inline]
    fn release(&self) {
        // ORDERING: Release pairs with the Acquire in `acquire` and `acquire_slowly`.
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        futex::wake(&self.state, 1);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard's existence means that this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the access the only one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.release();
    }
}
