//! What a heap gives out under limits, and how it is brought below one.
//!
//! **What.** A request that would take more memory than the hard limit allows gets it from what is free, and is refused if that is not
//! enough. [`Heap::relieve`] gives free memory back until no more than so much is in use.
//!
//! **Invariants.** L1 after a request no more is in use than the hard limit, or than before; L2 what is refused leaves the
//! heap as it was, but for memory given back.

use super::{Heap, background, trace};
use crate::hooks::Hooks;
use crate::page_heap::PageHeap;
use core::cmp::Ordering;
use craton_base::{Bytes, Clock, Density, Floor, PAGE_SHIFT, PageRange, Pages, Span, SpanError};
use craton_pages::Breaking;

/// Pages that are released in one go, while others wait.
const STEP: Pages = Pages(512);

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Bytes of memory in use, or free and with memory: heap, metadata and huge objects.
    fn used_with(&self, pages: &PageHeap<F, C>) -> u64 {
        (u64::from(pages.backed_pages().0) << PAGE_SHIFT) + self.besides(pages)
    }

    /// Of these, metadata and huge objects.
    fn besides(&self, pages: &PageHeap<F, C>) -> u64 {
        self.metadata(pages) + self.gate.huge()
    }

    /// Bytes of metadata.
    pub(super) fn metadata(&self, pages: &PageHeap<F, C>) -> u64 {
        let layout = self.layout();
        (layout.metadata_at_start + pages.granted().0 as usize * layout.metadata_per_hugepage) as u64
    }

    /// As [`Heap::used_with`], asked from outside.
    pub(crate) fn used(&self) -> u64 {
        self.used_with(&self.pages.lock())
    }

    /// Says that somebody should look, if so much is in use.
    #[inline]
    pub(super) fn note_use(&self, used: u64) {
        if self.gate.is_outside(used) {
            self.note_outside(used);
        }
    }

    #[cold]
    fn note_outside(&self, used: u64) {
        if used >= self.gate.high() {
            background::want_limits();
        } else {
            self.gate.rearm();
        }
    }

    /// Takes a span from the page heap, within the hard limit.
    pub(super) fn alloc_span(
        &self,
        p: &mut PageHeap<F, C>,
        pages: Pages,
        align: Pages,
        density: Density,
    ) -> Result<Span, SpanError> {
        let Some(hard) = self.gate.hard() else { return trace::alloc(p, pages, align, density) };
        if !self.could_hold(p, hard, pages) {
            return Err(SpanError::NoMemory);
        }
        let before = self.used_with(p);
        let span = trace::alloc(p, pages, align, density)?;
        if self.keep_below(p, hard) || self.used_with(p) <= before {
            return Ok(span);
        }
        // The system would not take free memory back.
        let given = trace::free(p, span.range, density);
        debug_assert_eq!(given, Ok(()), "the span was just taken");
        self.keep_below(p, before);
        Err(SpanError::NoMemory)
    }

    /// Makes a span longer or shorter where it stands, within the hard limit.
    pub(super) fn resize_span(&self, p: &mut PageHeap<F, C>, span: PageRange, len: Pages) -> Result<bool, SpanError> {
        let Some(hard) = self.gate.hard().filter(|_| len > span.len) else { return trace::resize(p, span, len) };
        if !self.could_hold(p, hard, Pages(len.0 - span.len.0)) {
            return Err(SpanError::NoMemory);
        }
        let before = self.used_with(p);
        let zeroed = trace::resize(p, span, len)?;
        if self.keep_below(p, hard) || self.used_with(p) <= before {
            return Ok(zeroed);
        }
        let given = trace::resize(p, PageRange::new(span.first, len), span.len);
        debug_assert!(given.is_ok(), "a span can always become shorter");
        self.keep_below(p, before);
        Err(SpanError::NoMemory)
    }

    /// Whether so many pages more could be in use if all free memory were given back.
    fn could_hold(&self, p: &PageHeap<F, C>, hard: u64, more: Pages) -> bool {
        let in_use = u64::from(p.in_use().0) + u64::from(more.0);
        (in_use << PAGE_SHIFT) + self.besides(p) <= hard
    }

    /// Gives free memory back, as far as no more than so much is to be in use; says whether that was done.
    fn keep_below(&self, p: &mut PageHeap<F, C>, most: u64) -> bool {
        while self.used_with(p) > most {
            if self.release_step(p, most) == 0 {
                return false;
            }
        }
        true
    }

    /// Gives some free memory back, if more than `most` bytes are in use; returns how many pages.
    fn release_step(&self, p: &mut PageHeap<F, C>, most: u64) -> u64 {
        let more = self.used_with(p).saturating_sub(most);
        let more = Bytes(more as usize).pages_up().unwrap_or(STEP).min(STEP).min(p.releasable(Breaking::Always));
        if more == Pages(0) { 0 } else { p.release(more, Breaking::Always).unwrap_or(0) }
    }

    /// Gives free memory back until no more than `most` bytes are in use, or nothing is left to give; lets others in between. Returns what is
    /// then in use, and how many pages went.
    pub(crate) fn relieve(&self, most: u64) -> (u64, u64) {
        if self.used() > most {
            self.caches.relieve(self);
            self.give_complete();
            self.drop_kept();
        }
        let mut released = self.with_pages(|p| {
            let used = self.used_with(p);
            if used > most {
                self.drain(p);
            }
            // What was in front may have been what kept hugepages from going back.
            used.saturating_sub(self.used_with(p)) >> PAGE_SHIFT
        });
        loop {
            let (used, step) = self.with_pages(|p| {
                let step = self.release_step(p, most);
                (self.used_with(p), step)
            });
            released += step;
            if step == 0 || used <= most {
                return (used, released);
            }
        }
    }

    /// Pages that could be given back now.
    pub(crate) fn releasable(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Always)
    }

    /// Pages that could be given back now without recent demand wanting them back.
    pub(crate) fn surplus(&self) -> Pages {
        self.pages.lock().releasable(Breaking::Surplus)
    }

    /// Whether a collapse, which gives memory to the free pages of a hugepage, could pass a limit.
    pub(super) fn is_near_limit(&self, pages: &PageHeap<F, C>) -> bool {
        const NEAR: u64 = 8 << 20;
        self.gate.tightest().is_some_and(|limit| self.used_with(pages).saturating_add(NEAR) > limit)
    }

    /// Counts a huge object that changes from `old` bytes to `new`; `false`, and it is not counted, when the hard limit does not allow
    /// for it.
    pub(crate) fn admit_huge(&self, old: usize, new: usize) -> bool {
        match new.cmp(&old) {
            Ordering::Less => self.gate.remove_huge((old - new) as u64),
            Ordering::Equal => {}
            Ordering::Greater => {
                // Counted first, so that of two that would fit one by one both cannot pass.
                self.gate.add_huge((new - old) as u64);
                if let Some(hard) = self.gate.hard()
                    && !self.make_way(hard)
                    && (!self.give_all_kept() || !self.make_way(hard))
                {
                    self.gate.remove_huge((new - old) as u64);
                    return false;
                }
            }
        }
        true
    }

    /// Takes back what [`Heap::admit_huge`] counted for an object that then could not be had.
    pub(crate) fn forget_huge(&self, old: usize, new: usize) {
        if new > old {
            self.gate.remove_huge((new - old) as u64);
        } else {
            self.gate.add_huge((old - new) as u64);
        }
    }

    /// Gives free memory back until the hard limit is kept with what is counted; says whether that was done.
    fn make_way(&self, hard: u64) -> bool {
        self.with_pages(|p| {
            if !self.could_hold(p, hard, Pages(0)) {
                self.drain(p);
            }
            self.could_hold(p, hard, Pages(0)) && self.keep_below(p, hard)
        })
    }

    /// After a huge object was counted: whether somebody has to look at the soft limit.
    pub(crate) fn note_huge(&self) {
        if self.gate.watches() {
            self.with_pages(|_| ());
        }
    }

    /// Whether the hard limit keeps so many bytes more from being had. The answer may be old.
    pub(crate) fn is_refused(&self, bytes: usize) -> bool {
        let Some(hard) = self.gate.hard() else { return false };
        let pages = self.pages.lock();
        let in_use = u64::from(pages.in_use().0) << PAGE_SHIFT;
        (in_use + self.besides(&pages)).saturating_add(bytes as u64) > hard
    }
}
