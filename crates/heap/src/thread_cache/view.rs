//! A cache's copy of the heap's fields, and how other threads reach its thread.
//!
//! Frees look up only pages below the cache's page count. At 0 each free is slow, and serves a
//! flush request or reads the mailbox.
//!
//! **Threads.** Any thread or process may store the 0; a torn store only slows frees. The fast path
//! reads it plainly: an atomic load would cost an instruction.
//!
//! **Unsafe.** Writes into caches of other threads.

use super::{HeapView, ThreadCache};
use core::sync::atomic::{Ordering, fence};
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};

impl ThreadCache {
    /// Keeps frees slow if a flush was requested.
    pub fn look_again(&mut self, view: HeapView<'_>, asked: &AtomicU32) {
        (self.base, self.pages, self.map) = (view.base, view.pages, view.map);
        // ORDERING: SeqCst pairs with the fence in `govern::request_flushes`: seen, or its 0 comes.
        fence(Ordering::SeqCst);
        if asked.load(Relaxed) != self.generation {
            self.pages = 0;
        }
    }

    /// Makes the next free slow.
    ///
    /// # Safety
    /// `this` is a cache, begun or all zeros.
    pub unsafe fn fail(this: *mut Self) {
        // SAFETY: by the contract. Its thread loads the word once per use: others may write it.
        unsafe { (&raw mut (*this).pages).write_volatile(0) };
    }
}
