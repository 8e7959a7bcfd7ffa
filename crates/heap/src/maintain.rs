//! What the heap does for itself, and what the process asks of it as a whole.
//!
//! **What.** A tick once a second, collapses, a full release, the locks around a fork, and sums for statistics.
//!
//! **Threads.** Lets other threads in between the steps of a tick.
//!
//! **Unsafe.** Returns batches that are between threads, and releases locks that a fork took.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::size_class::{self, CLASSES};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, CollapseError, HugePageId, PAGE_SHIFT, Pages, Platform};
use craton_pages::{Breaking, PageHeapExt, Tick};

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// How much memory goes back by itself, in bytes a second.
    pub fn set_release_rate(&self, bytes_per_s: u64) {
        self.pages.lock().set_release_rate(bytes_per_s);
    }

    /// What the page heap does by itself, collapses left out; also says how many pages are in use. Lets others in between its steps.
    pub fn tick(&self) -> (Tick, Pages) {
        self.report_refills();
        self.drain_transfers();
        self.drop_idle();
        self.lock_pages().drain();
        let mut all = Tick::default();
        loop {
            let mut pages = self.lock_pages();
            let (step, in_use) = (pages.tick_step(), pages.in_use());
            drop(pages);
            all.released += step.released;
            if !step.more {
                return (all, in_use);
            }
        }
    }

    /// Whether it is time to collapse hugepages; to be asked once a round.
    pub fn collapse_is_due(&self) -> bool {
        let mut pages = self.pages.lock();
        pages.collapse_is_due() && !self.is_near_limit(&pages)
    }

    /// The next hugepage to collapse; its memory stays until [`Heap::end_collapse`].
    pub fn begin_collapse(&self) -> Option<HugePageId> {
        let mut pages = self.pages.lock();
        let id = pages.begin_collapse();
        self.collapsing.store(id.map_or(0, |id| id.0 + 1), Relaxed);
        id
    }

    /// What came of a collapse; says whether another may be tried in this round.
    pub fn end_collapse(&self, id: HugePageId, result: Result<(), CollapseError>, took_ns: u64) -> bool {
        let mut pages = self.lock_pages();
        self.collapsing.store(0, Relaxed);
        pages.end_collapse(id, result, took_ns)
    }

    /// Returns the memory of all free pages to the system; says how many bytes lost theirs. `layers_above` returns what lies between
    /// them and this heap.
    pub fn release(&self, layers_above: impl FnOnce()) -> u64 {
        // What comes back to the page heap now may let whole hugepages go at once.
        let before = self.pages.lock().backed_pages();
        self.drain_transfers();
        layers_above();
        self.drop_complete();
        let kept = self.drop_kept() as u64;
        let mut pages = self.lock_pages();
        pages.drain();
        pages.release_all(Breaking::Always);
        let after = pages.backed_pages();
        drop(pages);
        kept + (u64::from(before.0.saturating_sub(after.0)) << PAGE_SHIFT)
    }

    /// Bytes of large objects, and of spans that layers above hold.
    pub fn large_bytes(&self) -> u64 {
        let slabs: u64 = (1..=CLASSES)
            .map(|c| u64::from(self.class_stats(c).slabs) * size_class::geometry(c).pages.bytes().0 as u64)
            .sum();
        let cached = self.pages_in_front().bytes().0 as u64;
        (self.pages.lock().in_use().bytes().0 as u64).saturating_sub(slabs + cached)
    }

    /// Takes every lock, for a fork.
    pub fn hold_for_fork(&self, nested: bool) {
        self.shards().iter().flat_map(|s| &s.classes).for_each(|c| c.0.hold_for_fork(nested));
        self.morphs.hold_for_fork(nested);
        self.pages.hold_for_fork(nested);
        self.huge.hold_for_fork(nested);
    }

    /// Gives every lock up after a fork.
    ///
    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe {
            self.huge.release_after_fork();
            self.pages.release_after_fork();
            self.morphs.release_after_fork();
            self.shards().iter().flat_map(|s| &s.classes).for_each(|c| c.0.release_after_fork());
        }
    }

    /// Reports all refills to the hooks.
    pub fn report_refills(&self) {
        self.shards().iter().for_each(|shard| shard.counts.flush::<H>());
    }

    /// Slabs of a class that have room and some object in use, and those that are complete.
    pub fn fullness(&self, class: usize) -> (u32, u32) {
        (0..self.shards().len()).fold((0, 0), |(partial, complete), home| {
            let slabs = self.slabs(home, class);
            (partial + slabs.partial(&self.layout().records), complete + slabs.complete())
        })
    }

    /// In a forked child: ends a collapse that another thread of the parent was at.
    pub fn forked(&self) {
        if let Some(id) = self.collapsing.load(Relaxed).checked_sub(1) {
            self.end_collapse(HugePageId(id), Err(CollapseError::Again), 0);
        }
    }
}
