//! Refill counts, on one cache line for each shard.
//!
//! **What.** One shared counter would bounce between threads at every refill. A shard reports its
//! refills by the dozen; statistics flush all shards first.
//!
//! **Threads.** No decision depends on these counts, so loom models omit them.

use crate::hooks::{Event, Hooks};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

const DOZEN: u32 = 12;
/// The heap's first refills are reported singly: a small program makes no more.
const FIRST: u64 = 1024;

#[repr(align(64))]
pub(crate) struct Counts {
    refills: AtomicU32,
    /// Whether more than [`FIRST`] were reported.
    is_late: AtomicBool,
    objects: AtomicU64,
}

impl Counts {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
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
