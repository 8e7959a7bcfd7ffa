//! Refill counts, on one cache line for each shard: one shared counter would bounce between
//! threads.
//!
//! No decision depends on them, so loom models omit them.

use crate::hooks::{Event, Hooks};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

const DOZEN: u32 = 12;
/// These are reported singly: a small program makes no more.
const FIRST: u64 = 1024;

#[repr(align(64))]
pub(crate) struct Counts {
    refills: AtomicU32,
    /// More than [`FIRST`] were reported.
    is_late: AtomicBool,
    objects: AtomicU64,
}

impl Counts {
    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub(super) const NONE: Self =
        Self { refills: AtomicU32::new(0), is_late: AtomicBool::new(false), objects: AtomicU64::new(0) };

    #[inline]
    pub(crate) fn count<H: Hooks>(&self, objects: u32) {
        self.objects.fetch_add(objects.into(), Relaxed);
        let refills = self.refills.fetch_add(1, Relaxed) + 1;
        if refills >= DOZEN || !self.is_late.load(Relaxed) {
            self.flush::<H>();
        }
    }

    pub(crate) fn flush<H: Hooks>(&self) {
        let event = Event::Refills { chains: self.refills.swap(0, Relaxed), objects: self.objects.swap(0, Relaxed) };
        self.is_late.store(H::event(event) >= FIRST, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
