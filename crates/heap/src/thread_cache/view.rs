//! What a cache knows of its heap, and how others have its thread come by.
//!
//! **What.** A free looks up its object's page below the number of pages that the cache knows of. Where that is 0 each free is slow, and the thread
//! finds in it what others want of it: that it gives up what its cache holds ([`crate::limits`]), or that it reads the [`crate::mailbox`].
//!
//! **Threads.** Anybody may write the 0, also another process, and a part of it: each number below the right one is as good. Its thread writes
//! the right one back in the slow request that follows. The fast path reads it plainly, once: read as an atomic, it would cost an instruction
//! in every free.
//!
//! **Unsafe.** Writes into caches of other threads.

use super::{HeapView, ThreadCache};
use core::sync::atomic::{Ordering, fence};
use craton_base::atomic::{AtomicU32, Ordering::Relaxed};

impl ThreadCache {
    /// Takes over what the heap says of itself; but frees stay slow if somebody has asked for what the cache holds meanwhile.
    pub fn look_again(&mut self, view: HeapView, asked: &AtomicU32) {
        (self.base, self.pages, self.map, self.key) = (view.base, view.pages, view.map, view.key);
        // ORDERING: SeqCst pairs with the fence in `limits::ask_for_caches`: either we see that somebody asks, or his 0 comes after our number.
        fence(Ordering::SeqCst);
        if asked.load(Relaxed) != self.generation {
            self.pages = 0;
        }
    }

    /// Has the next free of a cache's thread leave the fast path.
    ///
    /// # Safety
    /// `this` is a cache, begun or all zeros.
    pub unsafe fn fail(this: *mut Self) {
        // SAFETY: by the contract. The thread reads the word as one that another process may write: by a load for each use.
        unsafe { (&raw mut (*this).pages).write_volatile(0) };
    }
}
