//! Background work, and the process's requests to the whole heap.
//!
//! **Unsafe.** Releases locks that a fork took.

use crate::heap::Heap;
use crate::hooks::{Event, Hooks};
use crate::size_class::{self, CLASSES};
use crate::spans::Locked;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, CollapseError, HugePageId, Mappings, NoMemory, PAGE_SHIFT, Pages, Platform};
use craton_pages::{Breaking, MARGIN_PART, PageHeapExt, STEP, Tick, Took};

/// Pages released in one call from hugepages in use: 2 ms.
const BROKEN_NOW: Pages = Pages(2048);

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn set_release_rate(&self, bytes_per_s: u64) {
        self.pages.lock().set_release_rate(bytes_per_s);
    }

    /// Without collapses, and without locks between steps; also returns the pages in use.
    pub fn tick(&self) -> (Tick, Pages) {
        self.report_counts();
        self.drain_transfers();
        self.drop_idle();
        self.search.tick();
        while self.lock_pages().drain_some() {}
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

    /// For a process that may sleep next: leaves a 32nd of the use free, and breaks hugepages for
    /// [`BROKEN_NOW`]. Returns the pages.
    pub fn release_now(&self) -> u64 {
        let (mut broken, mut all) = (Pages(0), 0);
        while broken < BROKEN_NOW {
            let mut pages = self.lock_pages();
            pages.drain();
            let there = pages.releasable(Breaking::Always);
            let surplus = Pages(there.0.saturating_sub(pages.in_use().0 / MARGIN_PART));
            let whole = pages.releasable(Breaking::Never).min(surplus);
            let (most, breaking) = if whole.0 > 0 { (whole, Breaking::Never) } else { (surplus, Breaking::Always) };
            let released = pages.release(most.min(STEP), breaking).unwrap_or(0);
            if released == 0 {
                break;
            }
            all += released;
            broken.0 += if whole.0 > 0 { 0 } else { released as u32 };
        }
        all
    }

    /// Ask once a round.
    pub fn collapse_is_due(&self) -> bool {
        let mut pages = self.pages.lock();
        pages.collapse_is_due() && !self.is_near_limit(&pages)
    }

    /// The hugepage stays backed until [`Heap::end_collapse`].
    pub fn begin_collapse(&self) -> Option<HugePageId> {
        let mut pages = self.pages.lock();
        let id = if self.is_near_limit(&pages) { None } else { pages.begin_collapse() };
        self.collapsing.store(id.map_or(0, |id| id.0 + 1), Relaxed);
        id
    }

    /// Chooses a broken hugepage that a rise will refill; else as [`Heap::begin_collapse`].
    pub fn begin_refill(&self) -> Option<HugePageId> {
        let mut pages = self.pages.lock();
        let id = if self.is_near_limit(&pages) { None } else { pages.begin_refill() };
        self.collapsing.store(id.map_or(0, |id| id.0 + 1), Relaxed);
        id
    }

    /// Ahead of growth; [`Heap::end_clear`] must follow.
    pub fn begin_clear(&self) -> Option<HugePageId> {
        // Not published: that would count as a use of the heap.
        let mut pages = self.pages.lock();
        if self.is_near_limit(&pages) { None } else { pages.begin_clear() }
    }

    pub fn end_clear(&self, id: HugePageId, result: Result<(), NoMemory>, took: Took) {
        self.lock_pages().end_clear(id, result, took);
    }

    /// Whether a thread collapses hugepages from now on.
    pub fn set_helped(&self, helped: bool) {
        self.pages.lock().set_helped(helped);
    }

    /// Returns whether to try another in this round.
    pub fn end_collapse(&self, id: HugePageId, result: Result<(), CollapseError>, took: Took) -> bool {
        let mut pages = self.lock_pages();
        self.collapsing.store(0, Relaxed);
        let before = self.gate.hard().map(|hard| hard.max(pages.used()));
        let goes_on = pages.end_collapse(id, result, took);
        // Others may have reached the limit while it ran.
        before.is_none_or(|most| pages.keep_below(most)) && goes_on
    }

    pub fn next_dense_mapping(&self) -> Option<usize> {
        if !self.backs_huge() {
            return None;
        }
        let mut table = self.huge.lock();
        let (entry, at) = table.next_dense(&self.system)?;
        self.system.refuse_huge(entry.at, entry.bytes, false);
        Some(at)
    }

    pub fn count_collapse(&self, result: Result<(), CollapseError>, took: Took) -> bool {
        self.pages.lock().count_collapse(result, took)
    }

    /// Returns the bytes. `layers_above` flushes what is above.
    pub fn release(&self, layers_above: impl FnOnce()) -> u64 {
        // Flushed spans may free whole hugepages.
        let before = self.pages.lock().backed_pages();
        self.end_waits();
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

    /// Includes spans of layers above.
    pub fn large_bytes(&self) -> u64 {
        let slabs: u64 = (1..=CLASSES)
            .map(|c| u64::from(self.class_stats(c).slabs) * size_class::geometry(c).pages.bytes().0 as u64)
            .sum();
        let cached = self.pages_in_front().bytes().0 as u64;
        (self.pages.lock().in_use().bytes().0 as u64).saturating_sub(slabs + cached)
    }

    pub fn lock_for_fork(&self, nested: bool) {
        self.shards().iter().flat_map(|s| &s.classes).for_each(|c| c.0.lock_for_fork(nested));
        self.morphs.lock_for_fork(nested);
        self.pages.lock_for_fork(nested);
        self.huge.lock_for_fork(nested);
    }

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

    pub fn report_counts(&self) {
        self.shards().iter().for_each(|shard| shard.counts.flush::<H>());
        self.large.report_all(|objects| H::event(Event::LargeAllocs(objects)));
    }

    /// Partial and complete slabs.
    pub fn fullness(&self, class: usize) -> (u32, u32) {
        (0..self.shards().len()).fold((0, 0), |(partial, complete), home| {
            let slabs = self.slabs(home, class);
            (partial + slabs.partial(&self.layout().records), complete + slabs.complete())
        })
    }

    /// In a fork's child: ends another thread's collapse. If the fork interrupted the lock's
    /// holder, the child runs without the heap.
    pub fn forked(&self) {
        let Some(pages) = self.pages.try_lock() else { return };
        let mut pages = Locked { heap: self, pages };
        pages.set_helped(false);
        if let Some(id) = self.collapsing.swap(0, Relaxed).checked_sub(1) {
            pages.end_collapse(HugePageId(id), Err(CollapseError::Again), Took::default());
        }
    }
}
