//! The option `hardened`. The first request reads it, often before other options, since thread
//! caches then get their size.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

const UNSET: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

pub(crate) struct Hardening {
    asked: AtomicU8,
    has: AtomicU8,
}

impl Hardening {
    pub(crate) const fn new() -> Self {
        Self { asked: AtomicU8::new(UNSET), has: AtomicU8::new(UNSET) }
    }

    /// `false` if a heap is otherwise.
    pub(crate) fn set(&self, on: bool) -> bool {
        let value = if on { ON } else { OFF };
        match self.has.load(Relaxed) {
            UNSET => {
                self.asked.store(value, Relaxed);
                true
            }
            has => has == value,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        match self.has.load(Relaxed) {
            UNSET => self.asked.load(Relaxed) == ON,
            has => has == ON,
        }
    }

    /// If unset, `find` reads the environment's values.
    pub(crate) fn fix(&self, find: impl FnOnce(&dyn Fn(&[u8]))) -> bool {
        if self.asked.load(Relaxed) == UNSET {
            find(&|value| {
                if let b"0" | b"1" = value {
                    self.set(value == b"1");
                }
            });
        }
        let on = self.is_on();
        self.has.store(if on { ON } else { OFF }, Relaxed);
        on
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
