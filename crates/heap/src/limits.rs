//! Brings the heap below a limit, and keeps huge objects under the hard one ([`crate::spans`]).

use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::page_heap::PageHeap;
use core::cmp::Ordering;
use craton_base::{Clock, PAGE_SHIFT, Pages, Platform};
use craton_pages::{Breaking, PageHeapExt};

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    pub fn used(&self) -> u64 {
        self.used_with(&self.pages.lock())
    }

    /// Returns memory until at most `most` bytes are in use, without the lock between steps.
    /// Returns the bytes in use and the pages released.
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

    pub fn releasable(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Always)
    }

    /// Free pages beyond recent demand.
    pub fn surplus(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Surplus)
    }

    /// A collapse backs a hugepage's free pages.
    pub(crate) fn is_near_limit(&self, pages: &PageHeap<F, C>) -> bool {
        const NEAR: u64 = 8 << 20;
        self.gate.tightest().is_some_and(|limit| self.used_with(pages).saturating_add(NEAR) > limit)
    }

    /// `false`, uncounted, over the hard limit.
    pub(crate) fn admit_huge(&self, old: usize, new: usize) -> bool {
        match new.cmp(&old) {
            Ordering::Less => self.gate.remove_huge((old - new) as u64),
            Ordering::Equal => {}
            Ordering::Greater => {
                // Count first, so that two requests cannot both pass where one fits.
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

    /// Reverts [`Heap::admit_huge`].
    pub(crate) fn forget_huge(&self, old: usize, new: usize) {
        if new > old {
            self.gate.remove_huge((new - old) as u64);
        } else {
            self.gate.add_huge((old - new) as u64);
        }
    }

    /// `false`: the limit cannot be kept.
    fn make_way(&self, hard: u64) -> bool {
        let mut pages = self.lock_pages();
        if !pages.could_hold(hard, Pages(0)) {
            pages.drain();
        }
        pages.could_hold(hard, Pages(0)) && pages.keep_below(hard)
    }

    /// Publishes the usage if a limit is watched.
    pub(crate) fn publish_huge(&self) {
        if self.gate.watches() {
            drop(self.lock_pages());
        }
    }

    /// May be out of date.
    pub fn is_refused(&self, bytes: usize) -> bool {
        let Some(hard) = self.gate.hard() else { return false };
        let pages = self.pages.lock();
        let in_use = u64::from(pages.in_use().0) << PAGE_SHIFT;
        (in_use + self.besides(&pages)).saturating_add(bytes as u64) > hard
    }
}
