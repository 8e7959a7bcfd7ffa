//! The library's thread, unknown to the C library: a small stack, signals blocked, no malloc.
//!
//! **Unsafe.** Joins the thread, once.

use super::Helper;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use craton_os::thread::Hidden;
use craton_os::{Bell, process, thread};

pub(crate) struct HelperThread {
    end: Bell,
    hidden: AtomicUsize,
    owner: AtomicU32,
}

impl HelperThread {
    pub(crate) const fn new() -> Self {
        Self { end: Bell::new(), hidden: AtomicUsize::new(0), owner: AtomicU32::new(0) }
    }

    pub(crate) const fn nudge_at(this: *const Self) -> *const u8 {
        Bell::outside(this.cast::<u8>().wrapping_add(core::mem::offset_of!(Self, end)).cast())
    }
}

impl Helper for HelperThread {
    fn start(&self, run: fn()) -> bool {
        self.end.silence();
        self.owner.store(process::id(), Relaxed);
        let hidden = Hidden::start(run);
        self.hidden.store(hidden.map_or(0, Hidden::number), Relaxed);
        hidden.is_some()
    }

    fn join(&self) -> bool {
        // A process cloned past the C library has no thread.
        let ours = self.owner.load(Relaxed) == process::id();
        if ours {
            // SAFETY: this process started the thread; `Life` admits one caller, after a start and
            // before the next.
            unsafe { Hidden::from_number(self.hidden.load(Relaxed)).join() };
        }
        ours
    }

    fn ring(&self) {
        self.end.ring();
    }

    fn nudge(&self) {
        self.end.nudge();
    }

    fn is_rung(&self) -> bool {
        self.end.is_rung()
    }

    fn has_company(&self) -> bool {
        thread::had_others()
    }

    fn sleep(&self, ns: Option<u64>) -> bool {
        match ns {
            Some(ns) => self.end.wait_ns(ns),
            None => self.end.wait(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
