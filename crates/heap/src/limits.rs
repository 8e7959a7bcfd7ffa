//! Allocation under limits, and bringing a heap below one.
//!
//! **What.** A request beyond the hard limit is served from free memory, or refused.
//! [`Heap::relieve`] returns free memory until at most a given amount is in use.
//!
//! **Invariants.** L1 after a request no more is in use than the hard limit, or than before. L2 a
//! refused request leaves the heap as it was, except memory that went back.

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::page_heap::PageHeap;
use crate::spans::Locked;
use core::cmp::Ordering;
use craton_base::{Bytes, Clock, PAGE_SHIFT, Pages, Platform};
use craton_pages::{Breaking, PageHeapExt};

/// Pages released in one step, while other threads wait.
const STEP: Pages = Pages(512);

impl<F: Platform, C: Clock, H: Hooks> Locked<'_, F, C, H> {
    /// Bytes in use, or free and backed: heap, metadata and huge objects.
    pub(crate) fn used(&self) -> u64 {
        self.heap.used_with(&self.pages)
    }

    /// Whether the limit allows `more` pages if all free memory were returned.
    pub(crate) fn could_hold(&self, hard: u64, more: Pages) -> bool {
        let in_use = u64::from(self.pages.in_use().0) + u64::from(more.0);
        (in_use << PAGE_SHIFT) + self.heap.besides(&self.pages) <= hard
    }

    /// Returns free memory until at most `most` bytes are in use; `false` if that is impossible.
    pub(crate) fn keep_below(&mut self, most: u64) -> bool {
        while self.used() > most {
            if self.release_step(most) == 0 {
                return false;
            }
        }
        true
    }

    /// Returns some pages if more than `most` bytes are in use; returns their number.
    fn release_step(&mut self, most: u64) -> u64 {
        let more = self.used().saturating_sub(most);
        let more = Bytes(more as usize).pages_up().unwrap_or(STEP).min(STEP);
        let more = more.min(self.pages.releasable(Breaking::Always));
        if more == Pages(0) { 0 } else { self.pages.release(more, Breaking::Always).unwrap_or(0) }
    }
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    fn used_with(&self, pages: &PageHeap<F, C>) -> u64 {
        (u64::from(pages.backed_pages().0) << PAGE_SHIFT) + self.besides(pages)
    }

    /// Bytes of metadata and huge objects.
    fn besides(&self, pages: &PageHeap<F, C>) -> u64 {
        self.metadata(pages.granted()) + self.gate.huge()
    }

    /// [`Locked::used`], taking the lock.
    pub fn used(&self) -> u64 {
        self.used_with(&self.pages.lock())
    }

    /// Returns free memory until at most `most` bytes are in use or nothing is left; releases the
    /// lock between steps. Returns the bytes in use and the pages released.
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
        // Spans in front may pin hugepages.
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

    /// Of these, pages that recent demand does not want back.
    pub fn surplus(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Surplus)
    }

    /// Whether a collapse, which backs a hugepage's free pages, could pass a limit.
    pub(crate) fn is_near_limit(&self, pages: &PageHeap<F, C>) -> bool {
        const NEAR: u64 = 8 << 20;
        self.gate.tightest().is_some_and(|limit| self.used_with(pages).saturating_add(NEAR) > limit)
    }

    /// Counts a huge object's change of bytes; `false`, uncounted, over the hard limit.
    pub(crate) fn admit_huge(&self, old: usize, new: usize) -> bool {
        match new.cmp(&old) {
            Ordering::Less => self.gate.remove_huge((old - new) as u64),
            Ordering::Equal => {}
            Ordering::Greater => {
                // Count first, so that two requests cannot both pass where only one fits.
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

    /// Reverts [`Heap::admit_huge`] for a refused object.
    pub(crate) fn forget_huge(&self, old: usize, new: usize) {
        if new > old {
            self.gate.remove_huge((new - old) as u64);
        } else {
            self.gate.add_huge((old - new) as u64);
        }
    }

    /// Returns free memory until the hard limit is kept; `false` if that is impossible.
    fn make_way(&self, hard: u64) -> bool {
        let mut pages = self.lock_pages();
        if !pages.could_hold(hard, Pages(0)) {
            pages.drain();
        }
        pages.could_hold(hard, Pages(0)) && pages.keep_below(hard)
    }

    /// Publishes the usage after a huge object was counted, if a limit is watched.
    pub(crate) fn publish_huge(&self) {
        if self.gate.watches() {
            drop(self.lock_pages());
        }
    }

    /// Whether the hard limit refuses `bytes` more; may be out of date.
    pub fn is_refused(&self, bytes: usize) -> bool {
        let Some(hard) = self.gate.hard() else { return false };
        let pages = self.pages.lock();
        let in_use = u64::from(pages.in_use().0) << PAGE_SHIFT;
        (in_use + self.besides(&pages)).saturating_add(bytes as u64) > hard
    }
}
