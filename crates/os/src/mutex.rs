//! A futex lock of one word that knows its holder.
//!
//! **State.** 64 bits, for start-up before the C library; the futex is the lower half:
//! ```text
//! | holder's thread pointer, a multiple of 16; 0: free | 2: taken again for a fork | 1: contended |
//! ```
//! **Threads.** Spins some 30 µs, since most holders leave within tens of µs and sleeping costs 50
//! µs in a virtual machine. Not fair, not re-entrant.
//! **Failure.** A thread that waits for itself (a signal handler) aborts. A task cloned past the C
//! library can share its parent's thread pointer, so it first waits longer than any holder takes.
//! **Unsafe.** Hands out `&mut T` to the one holder.

pub mod rank;

use crate::{Line, futex, thread};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use craton_base::atomic::{AtomicU64, Ordering};
pub use rank::Rank;

const FREE: u64 = 0;
const CONTENDED: u64 = 1;
const AGAIN: u64 = 2;
/// 28 ns each. Two threads that replace objects of 32 to 512 KiB take 0.37 s with 100, 0.27 with
/// 1000, 0.30 with 3000.
const SPINS: u32 = if cfg!(loom) { 1 } else { 1000 };
/// Waits for itself before a thread aborts.
const DOUBTS: u32 = 100;
const DOUBT_NS: i64 = 10_000_000;

pub struct Mutex<T> {
    state: AtomicU64,
    #[cfg(all(debug_assertions, not(loom)))]
    rank: Rank,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> core::fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Mutex")
    }
}

pub struct Guard<'a, T> {
    lock: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// Byte offsets of word and value, for readers of another process.
    pub const SHAPE: [usize; 2] = [core::mem::offset_of!(Self, state), core::mem::offset_of!(Self, value)];

    /// No other lock is taken under it.
    pub const fn new(value: T) -> Self {
        Self::ranked(Rank::None, value)
    }

    /// No lock of this or a higher rank is held.
    #[cfg_attr(any(not(debug_assertions), loom), allow(unused_variables))]
    pub const fn ranked(rank: Rank, value: T) -> Self {
        Self {
            state: AtomicU64::new(FREE),
            #[cfg(all(debug_assertions, not(loom)))]
            rank,
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    fn rank(&self) -> Rank {
        #[cfg(all(debug_assertions, not(loom)))]
        return self.rank;
        #[cfg(any(not(debug_assertions), loom))]
        return Rank::None;
    }

    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        rank::check(self.rank(), false);
        self.acquire();
        rank::took(self.rank());
        Guard { lock: self }
    }

    /// For callers that would otherwise invert the lock order.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let own = thread::pointer() as u64;
        // ORDERING: as in `acquire`.
        let taken = self.state.compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed);
        // Not earlier: dropping a guard releases the lock.
        taken.is_ok().then(|| {
            rank::took(self.rank());
            Guard { lock: self }
        })
    }

    /// A forking signal handler may have interrupted the holder. `nested`: that holder may wait for
    /// the interrupted code, so do not wait for ever.
    pub fn lock_for_fork(&self, nested: bool) {
        if self.is_own() {
            self.state.fetch_or(AGAIN, Ordering::Relaxed);
            return;
        }
        if nested {
            acquire_slowly(&self.state, thread::pointer() as u64, true);
        } else {
            rank::check(self.rank(), true);
            self.acquire();
        }
        rank::took(self.rank());
    }

    /// # Safety
    /// The calling thread (in the child, its original) holds the lock through `lock_for_fork`.
    pub unsafe fn release_after_fork(&self) {
        if self.state.load(Ordering::Relaxed) & AGAIN == 0 {
            rank::gave(self.rank());
            self.release();
        } else {
            self.state.fetch_and(!AGAIN, Ordering::Relaxed);
        }
    }

    /// # Safety
    /// The calling thread holds the lock through `lock_for_fork`, and no other reference.
    #[allow(clippy::mut_from_ref)] // The lock gives the right, and the caller holds it.
    pub unsafe fn held_for_fork(&self) -> &mut T {
        // SAFETY: by the contract.
        unsafe { &mut *self.value.get() }
    }

    pub fn is_own(&self) -> bool {
        self.state.load(Ordering::Relaxed) & !(CONTENDED | AGAIN) == thread::pointer() as u64
    }

    #[inline]
    fn acquire(&self) {
        let own = thread::pointer() as u64;
        // ORDERING: pairs with the Release swap in `release`.
        if self.state.compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed).is_err() {
            acquire_slowly(&self.state, own, false);
        }
    }

    #[inline]
    fn release(&self) {
        // ORDERING: pairs with the Acquire in `acquire` and `acquire_slowly`.
        if self.state.swap(FREE, Ordering::Release) & CONTENDED != 0 {
            futex::wake_half(&self.state);
        }
    }
}

#[cold]
fn acquire_slowly(state: &AtomicU64, own: u64, nested: bool) {
    for _ in 0..SPINS {
        core::hint::spin_loop();
        // ORDERING: pairs with the Release swap in `release`.
        if state.load(Ordering::Relaxed) == FREE
            && state.compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return;
        }
    }
    let mut doubts = 0;
    loop {
        let seen = state.load(Ordering::Relaxed);
        if seen == FREE {
            // ORDERING: pairs with the Release swap in `release`.
            if state.compare_exchange(FREE, own | CONTENDED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
            continue;
        }
        let marked = seen | CONTENDED;
        if seen != marked && state.compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            continue;
        }
        if nested || seen & !(CONTENDED | AGAIN) == own {
            doubts += u32::from(futex::wait_half(state, marked, Some(DOUBT_NS)));
            if doubts >= DOUBTS {
                waits_for_itself();
            }
        } else {
            futex::wait_half(state, marked, None);
        }
    }
}

#[cold]
fn waits_for_itself() -> ! {
    Line::new()
        .text("craton: a signal handler that interrupted malloc or free needs a lock of theirs, and would wait for ever; ")
        .text("call no function in a handler that signal-safety(7) does not list")
        .abort()
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; `&mut self` excludes others.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        rank::gave(self.lock.rank());
        self.lock.release();
    }
}

#[cfg(test)]
mod tests;
