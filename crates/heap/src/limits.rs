//! What a heap gives out under limits, and how it is brought below one.
//!
//! **What.** A request that would take more memory than the hard limit allows gets it from what is free, and is refused if that
//! is not enough. [`Heap::relieve`] returns free memory until no more than a given amount is in use.
//!
//! **Invariants.** L1 after a request no more is in use than the hard limit, or than before; L2 a refused request leaves the
//! heap as it was, but for memory that went back.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::page_heap::PageHeap;
use crate::spans::Locked;
use core::cmp::Ordering;
use craton_base::{Bytes, Clock, PAGE_SHIFT, Pages, Platform};
use craton_pages::{Breaking, PageHeapExt};

/// Pages that are released in one step, while other threads wait.
const STEP: Pages = Pages(512);

impl<F: Platform, C: Clock, H: Hooks> Locked<'_, F, C, H> {
    /// Bytes of memory in use, or free and backed: heap, metadata and huge objects.
    pub(crate) fn used(&self) -> u64 {
        self.heap.used_with(&self.pages)
    }

    /// Whether `more` pages could be in use if all free memory were returned.
    pub(crate) fn could_hold(&self, hard: u64, more: Pages) -> bool {
        let in_use = u64::from(self.pages.in_use().0) + u64::from(more.0);
        (in_use << PAGE_SHIFT) + self.heap.besides(&self.pages) <= hard
    }

    /// Returns free memory until no more than `most` bytes are in use; `false` when that cannot be done.
    pub(crate) fn keep_below(&mut self, most: u64) -> bool {
        while self.used() > most {
            if self.release_step(most) == 0 {
                return false;
            }
        }
        true
    }

    /// Returns some free memory, if more than `most` bytes are in use; says how many pages.
    fn release_step(&mut self, most: u64) -> u64 {
        let more = self.used().saturating_sub(most);
        let more = Bytes(more as usize).pages_up().unwrap_or(STEP).min(STEP);
        let more = more.min(self.pages.releasable(Breaking::Always));
        if more == Pages(0) { 0 } else { self.pages.release(more, Breaking::Always).unwrap_or(0) }
    }
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Bytes of memory in use, or free and backed: heap, metadata and huge objects.
    fn used_with(&self, pages: &PageHeap<F, C>) -> u64 {
        (u64::from(pages.backed_pages().0) << PAGE_SHIFT) + self.besides(pages)
    }

    /// Of these, metadata and huge objects.
    fn besides(&self, pages: &PageHeap<F, C>) -> u64 {
        self.metadata(pages.granted()) + self.gate.huge()
    }

    /// As [`Locked::used`], without a lock held.
    pub fn used(&self) -> u64 {
        self.used_with(&self.pages.lock())
    }

    /// Returns free memory until no more than `most` bytes are in use, or nothing is left to return; lets other threads in
    /// between. Says what is then in use, and how many pages went.
    pub fn relieve(&self, most: u64) -> (u64, u64) {
        if self.used() > most {
            self.drop_complete();
            self.drop_kept();
        }
        let mut pages = self.lock_pages();
        let used = pages.used();
        if used > most {
            pages.drain();
        }
        // Spans in front may have kept hugepages from going back.
        let mut released = used.saturating_sub(pages.used()) >> PAGE_SHIFT;
        drop(pages);
        loop {
            let mut pages = self.lock_pages();
            let step = pages.release_step(most);
            let used = pages.used();
            drop(pages);
            released += step;
            if step == 0 || used <= most {
                return (used, released);
            }
        }
    }

    /// Pages that could be returned now.
    pub fn releasable(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Always)
    }

    /// Pages that could be returned now without recent demand wanting them back.
    pub fn surplus(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Surplus)
    }

    /// Whether a collapse, which backs the free pages of a hugepage, could pass a limit.
    pub(crate) fn is_near_limit(&self, pages: &PageHeap<F, C>) -> bool {
        const NEAR: u64 = 8 << 20;
        self.gate.tightest().is_some_and(|limit| self.used_with(pages).saturating_add(NEAR) > limit)
    }

    /// Counts a huge object that changes from `old` bytes to `new`; `false`, and it is not counted, when the hard limit does
    /// not allow for it.
    pub(crate) fn admit_huge(&self, old: usize, new: usize) -> bool {
        match new.cmp(&old) {
            Ordering::Less => self.gate.remove_huge((old - new) as u64),
            Ordering::Equal => {}
            Ordering::Greater => {
                // Counted first, so that of two that would fit one by one both cannot pass.
                self.gate.add_huge((new - old) as u64);
                if let Some(hard) = self.gate.hard()
                    && !self.make_way(hard)
                    && (!self.drop_all_kept() || !self.make_way(hard))
                {
                    self.gate.remove_huge((new - old) as u64);
                    return false;
                }
            }
        }
        true
    }

    /// Takes back what [`Heap::admit_huge`] counted for an object that then was refused.
    pub(crate) fn forget_huge(&self, old: usize, new: usize) {
        if new > old {
            self.gate.remove_huge((new - old) as u64);
        } else {
            self.gate.add_huge((old - new) as u64);
        }
    }

    /// Returns free memory until the hard limit is kept with what is counted; `false` when that cannot be done.
    fn make_way(&self, hard: u64) -> bool {
        let mut pages = self.lock_pages();
        if !pages.could_hold(hard, Pages(0)) {
            pages.drain();
        }
        pages.could_hold(hard, Pages(0)) && pages.keep_below(hard)
    }

    /// After a huge object was counted: publishes it, if a limit is watched.
    pub(crate) fn publish_huge(&self) {
        if self.gate.watches() {
            drop(self.lock_pages());
        }
    }

    /// Whether the hard limit keeps `bytes` more from being allocated. The answer may be old.
    pub fn is_refused(&self, bytes: usize) -> bool {
        let Some(hard) = self.gate.hard() else { return false };
        let pages = self.pages.lock();
        let in_use = u64::from(pages.in_use().0) << PAGE_SHIFT;
        (in_use + self.besides(&pages)).saturating_add(bytes as u64) > hard
    }
}
