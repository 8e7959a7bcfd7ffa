//! A spin lock (LLFree §2). A long wait yields to a holder without a processor.

use std::sync::atomic::{AtomicBool, Ordering};

/// Before others may run.
const LOOKS: u32 = 200;

#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Spin(AtomicBool);

pub struct Held<'a>(&'a Spin);

impl Spin {
    #[inline]
    pub fn lock(&self) -> Held<'_> {
        // ORDERING: pairs with the Release of `drop`.
        while self.0.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Held(self)
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            if !self.0.load(Ordering::Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
        std::thread::yield_now();
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: pairs with the Acquire of `lock`.
        self.0.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
