//! Span sources: the layers between a size class's slabs and the page heap (TEMERAIRE §3).
//! ```text
//! Recut     slabs of other classes serve before the page heap (`morph.rs`)
//! Marked    marks a class's spans in the page map; keeps freed short spans in front
//! Kept      kept spans serve, or go back, before the page heap grows
//! Locked    the locked page heap: hard limit, events, usage published on release
//! ```
//! To the page heap, freed spans in front of it and complete slabs are in use.
//!
//! **Invariants.** *L1* after a request no more is in use than the hard limit, or than before. *L2*
//! a refused request leaves the heap as it was, except memory that went back.

use crate::heap::Heap;
use crate::hooks::{Event, Hooks, SpanEvent, Usage};
use crate::page_heap::PageHeap;
use crate::size_class;
use core::ops::{Deref, DerefMut};
use craton_base::atomic::Ordering::Relaxed;
use craton_base::{
    Bytes, Clock, Density, HugePages, Machine, PAGE_SHIFT, PageId, PageRange, Pages, Platform, Span, SpanError,
    SpanSource,
};
use craton_os::Guard;
use craton_pages::{Breaking, PageHeapExt, SLOW_NS, STEP};
use craton_slab::SlabCache;

/// One hold of the lock: some 10 µs.
const DRAINED_AT_ONCE: u32 = 64;

pub struct NoSpans;

impl SpanSource for NoSpans {
    fn alloc(&mut self, _: Pages, _: Pages, _: Density) -> Result<Span, SpanError> {
        Err(SpanError::NoMemory)
    }

    fn free(&mut self, _: PageRange, _: Density) -> Result<(), SpanError> {
        Err(SpanError::NoMemory)
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}

pub struct Marked<'a, F: Platform, C: Clock, H: Hooks> {
    pub(crate) heap: &'a Heap<F, C, H>,
    pub(crate) home: usize,
    pub(crate) class: usize,
}

impl<F: Platform, C: Clock, H: Hooks> Marked<'_, F, C, H> {
    /// Takes no lock.
    pub(crate) fn alloc_short(&self, pages: Pages, align: Pages, density: Density) -> Option<Span> {
        let cpu = self.heap.system.cpu();
        let range = self.heap.spans.pop(cpu, pages, align, density).or_else(|| {
            let kept = if density == Density::Sparse { self.heap.large.pop_exactly(cpu, pages, align) } else { None };
            kept.map(|span| self.heap.unguard(span))
        })?;
        self.adopt(range);
        Some(Span { range, zeroed: false })
    }

    pub(crate) fn adopt(&self, range: PageRange) {
        let record = self.heap.record(range.first);
        self.heap.search.grew(self.class);
        record.set_owner(self.home);
        self.heap.length(range.first).set_pages(range.len);
        self.mark(range, self.class as u8);
    }

    fn mark(&self, range: PageRange, mark: u8) {
        // Of a single object only the first page may be freed.
        self.heap.set_marks(range, mark, !size_class::geometry(self.class).is_single());
    }
}

impl<F: Platform, C: Clock, H: Hooks> SpanSource for Marked<'_, F, C, H> {
    fn alloc(&mut self, _: Pages, _: Pages, _: Density) -> Result<Span, SpanError> {
        // Slabs that free objects take no span.
        Err(SpanError::NoMemory)
    }

    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.heap.length(span.first).set_pages(Pages(0));
        self.heap.search.shrank(self.class);
        self.mark(span, 0);
        // The page heap knows the hugepage's density, even of a morphed slab.
        if self.heap.spans.put(self.heap.system.cpu(), span, density) {
            return Ok(());
        }
        if density == Density::Sparse {
            self.heap.keep_span(span).inspect(|span| self.heap.give_span(*span));
            return Ok(());
        }
        let freed = self.heap.lock_pages().free(span, density);
        self.heap.expect_given(span, freed);
        freed
    }

    fn resize(&mut self, _: PageRange, _: Pages) -> Result<bool, SpanError> {
        Err(SpanError::NoMemory)
    }
}

pub(crate) struct Kept<'a, F: Platform, C: Clock, H: Hooks> {
    pub(crate) heap: &'a Heap<F, C, H>,
}

impl<F: Platform, C: Clock, H: Hooks> Kept<'_, F, C, H> {
    pub(crate) fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let heap = self.heap;
        let mut locked = heap.lock_pages();
        let mut span = locked.alloc_backed(pages, align, density);
        let grows = span.is_err();
        let keeps = grows && (heap.complete_pages() > Pages(0) || heap.large.pages() > Pages(0));
        if grows && !keeps {
            span = locked.alloc(pages, align, density);
        }
        drop(locked);
        if keeps {
            span = self.alloc_kept(pages, align, density);
        }
        if density == Density::Dense
            && let Ok(Span { range, zeroed: true }) = span
        {
            heap.touch_first(range.first);
        }
        if span == Err(SpanError::NoMemory) && heap.drop_all_kept() {
            return heap.lock_pages().alloc_drained(pages, align, density);
        }
        span
    }

    #[cold]
    fn alloc_kept(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let heap = self.heap;
        if density == Density::Sparse
            && let Some(longer) = heap.large.pop_longer(heap.system.cpu(), pages, align)
        {
            heap.unguard(longer);
            let shortened = heap.lock_pages().resize_free(longer, pages);
            heap.expect_given(longer, shortened.map(|_| ()));
            return Ok(Span { range: PageRange::new(longer.first, pages), zeroed: false });
        }
        heap.drop_complete();
        heap.lock_pages().alloc_drained(pages, align, density)
    }
}

/// Publishes its usage on release.
pub struct Locked<'a, F: Platform, C: Clock, H: Hooks> {
    pub(crate) heap: &'a Heap<F, C, H>,
    pub(crate) pages: Guard<'a, PageHeap<F, C>>,
}

impl<F: Platform, C: Clock, H: Hooks> Deref for Locked<'_, F, C, H> {
    type Target = PageHeap<F, C>;

    fn deref(&self) -> &PageHeap<F, C> {
        &self.pages
    }
}

impl<F: Platform, C: Clock, H: Hooks> DerefMut for Locked<'_, F, C, H> {
    fn deref_mut(&mut self) -> &mut PageHeap<F, C> {
        &mut self.pages
    }
}

impl<F: Platform, C: Clock, H: Hooks> Drop for Locked<'_, F, C, H> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl<F: Platform, C: Clock, H: Hooks> Locked<'_, F, C, H> {
    pub(crate) fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        self.alloc_from(|heap| heap.alloc(pages, align, density), (pages, align, density))
    }

    fn alloc_backed(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        let backed = |heap: &mut PageHeap<F, C>| heap.alloc_backed(pages, align, density).ok_or(SpanError::NoMemory);
        self.alloc_from(backed, (pages, align, density))
    }

    #[inline]
    fn alloc_from(
        &mut self,
        from: impl FnOnce(&mut PageHeap<F, C>) -> Result<Span, SpanError>,
        (pages, align, density): (Pages, Pages, Density),
    ) -> Result<Span, SpanError> {
        let hard = self.heap.gate.hard();
        let before = match hard {
            Some(hard) if !self.could_hold(hard, pages) => return Err(SpanError::NoMemory),
            Some(_) => self.used(),
            None => 0,
        };
        let span = from(&mut self.pages)?;
        H::span(SpanEvent::Alloc { range: span.range, align, density });
        if hard.is_none_or(|hard| self.keep_below(hard)) || self.used() <= before {
            return Ok(span);
        }
        // The system refused to take free memory back.
        let freed = self.free(span.range, density);
        debug_assert_eq!(freed, Ok(()), "the span was just allocated");
        self.keep_below(before);
        Err(SpanError::NoMemory)
    }

    pub(crate) fn alloc_drained(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError> {
        self.drain();
        self.alloc(pages, align, density)
    }

    pub(crate) fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError> {
        self.pages.free(span, density)?;
        H::span(SpanEvent::Free { range: span, density });
        Ok(())
    }

    /// Its whole hugepages were moved away.
    pub(crate) fn free_moved(&mut self, span: PageRange) -> Result<(), SpanError> {
        self.pages.free_moved(span)?;
        H::span(SpanEvent::Free { range: span, density: Density::Sparse });
        Ok(())
    }

    pub(crate) fn recut(
        &mut self,
        range: PageRange,
        each: Pages,
        mut parts: impl Iterator<Item = PageRange>,
    ) -> Result<(), SpanError> {
        self.pages.recut(range, each)?;
        let whole = parts.next().is_some_and(|first| first.len == each);
        parts.for_each(|range| H::span(SpanEvent::Free { range, density: Density::Sparse }));
        let mut pieces = (range.first.0..range.end().0).step_by(each.0 as usize);
        if let Some(first) = pieces.next().filter(|_| !whole) {
            H::span(SpanEvent::Resize { range: PageRange::new(PageId(first), each) });
        }
        for first in pieces {
            let range = PageRange::new(PageId(first), each);
            H::span(SpanEvent::Alloc { range, align: Pages(1), density: Density::Sparse });
        }
        Ok(())
    }

    /// Takes free, backed pages between spans.
    pub(crate) fn alloc_at(&mut self, range: PageRange) -> bool {
        let taken = self.pages.alloc_at(range);
        if taken {
            H::span(SpanEvent::Alloc { range, align: Pages(1), density: Density::Sparse });
        }
        taken
    }

    pub(crate) fn resize(&mut self, span: PageRange, len: Pages) -> Result<bool, SpanError> {
        let Some(hard) = self.heap.gate.hard().filter(|_| len > span.len) else {
            return self.resize_free(span, len);
        };
        if !self.could_hold(hard, Pages(len.0 - span.len.0)) {
            return Err(SpanError::NoMemory);
        }
        let before = self.used();
        let zeroed = self.resize_free(span, len)?;
        if self.keep_below(hard) || self.used() <= before {
            return Ok(zeroed);
        }
        let shortened = self.resize_free(PageRange::new(span.first, len), span.len);
        debug_assert!(shortened.is_ok(), "a span can always become shorter");
        self.keep_below(before);
        Err(SpanError::NoMemory)
    }

    pub(crate) fn resize_free(&mut self, span: PageRange, len: Pages) -> Result<bool, SpanError> {
        let zeroed = self.pages.resize(span, len)?;
        H::span(SpanEvent::Resize { range: PageRange::new(span.first, len) });
        Ok(zeroed)
    }

    pub(crate) fn drain(&mut self) {
        let heap = self.heap;
        heap.spans.drain(|span, density| {
            let freed = self.free(span, density);
            debug_assert_eq!(freed, Ok(()), "a cached span is out");
        });
        heap.large.drain(|span| {
            let freed = self.free(heap.unguard(span), Density::Sparse);
            debug_assert_eq!(freed, Ok(()), "a cached span is out");
        });
    }

    /// `false`: no more are left.
    pub(crate) fn drain_some(&mut self) -> bool {
        (0..DRAINED_AT_ONCE).all(|_| {
            let span = self.heap.large.evict_any();
            span.is_some_and(|span| self.free(self.heap.unguard(span), Density::Sparse).is_ok())
        })
    }

    /// Bytes of backed memory, metadata and huge objects.
    pub(crate) fn used(&self) -> u64 {
        self.heap.used_with(&self.pages)
    }

    /// Whether `more` pages fit once all free memory is returned.
    pub(crate) fn could_hold(&self, hard: u64, more: Pages) -> bool {
        let in_use = u64::from(self.pages.in_use().0) + u64::from(more.0);
        (in_use << PAGE_SHIFT) + self.heap.besides(&self.pages) <= hard
    }

    /// `false`: more than `most` bytes stay in use.
    pub(crate) fn keep_below(&mut self, most: u64) -> bool {
        while self.used() > most {
            if self.release_step(most) == 0 {
                return false;
            }
        }
        true
    }

    pub(crate) fn release_step(&mut self, most: u64) -> u64 {
        let more = self.used().saturating_sub(most);
        let more = Bytes(more as usize).pages_up().unwrap_or(STEP).min(STEP);
        let more = more.min(self.pages.releasable(Breaking::Always));
        if more == Pages(0) { 0 } else { self.pages.release(more, Breaking::Always).unwrap_or(0) }
    }

    fn publish(&mut self) {
        let heap = self.heap;
        let (in_use, backed) = (self.pages.in_use(), self.pages.backed());
        heap.search.note_in_use(in_use);
        heap.free_pages.store(backed.pages().0.saturating_sub(in_use.0), Relaxed);
        heap.in_use_pages.store(in_use.0, Relaxed);
        let granted = self.pages.granted();
        // Every refill reads this line: do not dirty it.
        if heap.granted_pages.load(Relaxed) != granted.pages().0 as usize {
            heap.granted_pages.store(granted.pages().0 as usize, Relaxed);
        }
        let (metadata, backed_bytes) = (heap.metadata(granted), self.pages.backed_pages().bytes().0 as u64);
        let usage = Usage { in_use, backed, backed_bytes, metadata_bytes: metadata };
        H::usage(usage, || self.pages.releasable(Breaking::Always));
        if self.pages.is_growing() {
            H::event(Event::Grows);
        }
        if self.pages.has_dense_small() {
            H::event(Event::DenseSmall);
        }
        let used = backed_bytes + metadata + heap.gate.huge();
        if heap.gate.is_outside(used) {
            heap.left_watermark_band(used);
        }
    }
}

/// Counts a class's complete slabs on release.
pub(crate) struct Counted<'a, F: Platform, C: Clock, H: Hooks> {
    heap: &'a Heap<F, C, H>,
    home: usize,
    class: usize,
    slabs: Guard<'a, SlabCache>,
    complete: u32,
}

impl<'a, F: Platform, C: Clock, H: Hooks> Counted<'a, F, C, H> {
    #[inline]
    pub(crate) fn new(heap: &'a Heap<F, C, H>, home: usize, class: usize, mut slabs: Guard<'a, SlabCache>) -> Self {
        slabs.let_keep(heap.shards[home].complete.has_room(heap.in_use()));
        let complete = slabs.complete();
        Self { heap, home, class, slabs, complete }
    }
}

impl<F: Platform, C: Clock, H: Hooks> Deref for Counted<'_, F, C, H> {
    type Target = SlabCache;

    fn deref(&self) -> &SlabCache {
        &self.slabs
    }
}

impl<F: Platform, C: Clock, H: Hooks> DerefMut for Counted<'_, F, C, H> {
    fn deref_mut(&mut self) -> &mut SlabCache {
        &mut self.slabs
    }
}

impl<F: Platform, C: Clock, H: Hooks> Drop for Counted<'_, F, C, H> {
    #[inline]
    fn drop(&mut self) {
        let now = self.slabs.complete();
        if self.heap.shards[self.home].complete.update(self.class, self.complete, now) {
            H::event(Event::SlabsReused);
        }
    }
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    #[inline]
    pub(crate) fn lock_slabs(&self, home: usize, class: usize) -> Counted<'_, F, C, H> {
        Counted::new(self, home, class, self.slabs(home, class))
    }

    pub fn lock_pages(&self) -> Locked<'_, F, C, H> {
        Locked { heap: self, pages: self.pages.lock() }
    }

    /// Outside of the lock, since the fault may be slow.
    fn touch_first(&self, first: PageId) {
        if first.0.is_multiple_of(HugePages(1).pages().0) && self.system.touch(self.address(first) as usize) >= SLOW_NS
        {
            self.pages.lock().record_slow();
        }
    }

    #[cold]
    fn left_watermark_band(&self, used: u64) {
        if used >= self.gate.high() {
            H::event(Event::LimitPassed);
        } else {
            self.gate.rearm();
        }
    }

    pub(crate) fn used_with(&self, pages: &PageHeap<F, C>) -> u64 {
        (u64::from(pages.backed_pages().0) << PAGE_SHIFT) + self.besides(pages)
    }

    pub(crate) fn besides(&self, pages: &PageHeap<F, C>) -> u64 {
        self.metadata(pages.granted()) + self.gate.huge()
    }

    pub(crate) fn pages_in_front(&self) -> Pages {
        Pages(self.spans.pages().0 + self.large.pages().0)
    }

    pub(crate) fn complete_pages(&self) -> Pages {
        Pages(self.shards().iter().map(|shard| shard.complete.pages().0).sum())
    }

    /// Skips classes that another thread has locked.
    #[cold]
    pub(crate) fn drop_complete(&self) {
        self.for_complete(|slabs, source| slabs.free_complete(u32::MAX, &self.layout().records, source));
    }

    /// Drops complete slabs that no request needed since the last call.
    pub(crate) fn drop_idle(&self) {
        self.for_complete(|slabs, source| slabs.free_idle(&self.layout().records, source));
    }

    fn for_complete(&self, mut act: impl FnMut(&mut SlabCache, &mut Marked<'_, F, C, H>)) {
        for (home, shard) in self.shards().iter().enumerate() {
            for class in shard.complete.classes() {
                if let Some(slabs) = self.try_slabs(home, class) {
                    act(&mut Counted::new(self, home, class, slabs), &mut Marked { heap: self, home, class });
                }
            }
        }
    }

    /// Returns whether anything was kept.
    pub(crate) fn drop_all_kept(&self) -> bool {
        let complete = self.complete_pages();
        if complete > Pages(0) {
            self.drop_complete();
        }
        (self.drop_kept() > 0) | (self.pages_in_front() > Pages(0)) | (complete > Pages(0))
    }
}
