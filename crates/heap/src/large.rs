//! Large objects: whole pages of the page heap, and freed ones kept in front of it.
//!
//! **What.** A freed span may wait in the large cache for the next object of its length, without a
//! lock. To the page heap it is in use.
//!
//! **State.** The page map marks the first page, whose record holds the length. After a free the
//! record keeps it, to report a double free, until something else begins there.

use crate::heap::Heap;
use crate::hooks::{Damage, Event, Hooks};
use crate::misuse::Misuse;
use crate::size_class::LARGE;
use crate::spans::Kept;
use core::ptr::null_mut;
use craton_base::{Clock, Density, HugePages, Machine, PAGE_SIZE, PageId, PageRange, Pages, Platform, Span, SpanError};
use craton_pages::{LargeCache, PageHeapExt};

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Allocates a span for a large object; `Span::zeroed` tells whether it reads as zeros.
    pub fn take_large(&self, pages: Pages, align: Pages) -> Result<Span, SpanError> {
        let cpu = self.system.cpu();
        if let Some(range) = self.large.take_anywhere(cpu, pages, align) {
            self.begin_large(range, cpu);
            return Ok(Span { range, zeroed: false });
        }
        let span = Kept { heap: self }.alloc(pages, align, Density::Sparse)?;
        self.large.count(cpu);
        self.begin_large(span.range, cpu);
        Ok(span)
    }

    /// A freed large object's span with its old contents; takes no lock.
    #[inline]
    pub fn take_large_kept(&self, pages: Pages, align: Pages) -> Option<PageRange> {
        let cpu = self.system.cpu();
        let range = self.large.take(cpu, pages, align)?;
        self.begin_large(range, cpu);
        Some(range)
    }

    #[inline]
    fn begin_large(&self, span: PageRange, cpu: usize) {
        self.length(span.first).set_pages(span.len);
        self.set_marks(span, LARGE, false);
        self.large.report(cpu, |objects| H::event(Event::LargeAllocs(objects)));
    }

    /// Bound on kept pages: 2 MiB and 1/8 of the use; none above a hard limit. They go back before
    /// the heap grows.
    fn most_large_kept(&self) -> Pages {
        let in_use = self.in_use();
        match self.gate.hard() {
            Some(hard) if in_use.bytes().0 as u64 > hard => Pages(0),
            _ => Pages(256 + in_use.0 / 8),
        }
    }

    /// Length of the large object at a page marked so.
    pub fn large_pages(&self, first: PageId) -> Pages {
        self.length(first).pages()
    }

    /// The first page of the large object that begins at an address.
    #[inline]
    pub fn large_at(&self, address: usize) -> Option<PageId> {
        let page = self.page_of(address)?;
        (self.mark(page) == LARGE && address.is_multiple_of(PAGE_SIZE)).then_some(page)
    }

    /// Frees a large object without a lock. Returns a span that the cache has no room for: the
    /// caller passes it to [`Heap::give_span`].
    pub fn give_large(&self, first: PageId) -> Option<PageRange> {
        let length = self.length(first);
        let span = PageRange::new(first, length.pages());
        if span.len == Pages(0) {
            self.given_twice(first);
        }
        length.set_gone(span.len);
        self.set_marks(span, 0, false);
        self.keep_span(span)
    }

    /// Keeps a freed span in front of the page heap. Returns one that must go there.
    pub(crate) fn keep_span(&self, span: PageRange) -> Option<PageRange> {
        let cpu = self.system.cpu();
        let old = self.large.put(cpu, span);
        if old.is_none() && self.large.is_over(cpu, self.most_large_kept()) { self.large.evict(cpu) } else { old }
    }

    /// Reports a concurrent double free.
    #[cold]
    fn given_twice(&self, first: PageId) -> ! {
        let misuse = self.freed_large(first).unwrap_or(Misuse::Unallocated);
        H::corrupt(Damage::Object { object: self.address(first), misuse })
    }

    /// The misuse of a pointer to a freed large object.
    pub fn freed_large(&self, page: PageId) -> Option<Misuse> {
        self.length(page).gone().map(|pages| Misuse::Freed { size: pages.bytes().0 })
    }

    /// Frees a large object's span to the page heap.
    #[cold]
    pub fn give_span(&self, span: PageRange) {
        let mut pages = self.lock_pages();
        let freed = pages.free(span, Density::Sparse);
        // More at a time take the lock less often.
        let (cpu, most) = (self.system.cpu(), self.most_large_kept());
        let most = Pages(most.0 - most.0 / 8);
        while self.large.is_over(cpu, most)
            && let Some(span) = self.large.evict(cpu)
        {
            let freed = pages.free(span, Density::Sparse);
            debug_assert_eq!(freed, Ok(()), "a cached span is out");
        }
        drop(pages);
        self.expect_given(span, freed);
    }

    /// Whole hugepages of a large object that can be moved away.
    pub fn movable(&self, span: PageRange) -> HugePages {
        self.pages.lock().movable(span)
    }

    /// Frees a large object's span whose whole hugepages were moved away.
    pub fn give_moved_large(&self, first: PageId) {
        let length = self.length(first);
        let span = PageRange::new(first, length.pages());
        length.set_gone(span.len);
        self.set_marks(span, 0, false);
        let given = self.lock_pages().free_moved(span);
        self.expect_given(span, given);
    }

    /// Resizes a large object in place.
    pub fn resize_large(&self, first: PageId, pages: Pages) -> Result<(), SpanError> {
        let length = self.length(first);
        self.lock_pages().resize(PageRange::new(first, length.pages()), pages)?;
        length.set_pages(pages);
        Ok(())
    }

    /// A kept span for a large object, aligned to a page; else null.
    #[inline]
    pub fn large_at_hand(&self, size: usize) -> *mut u8 {
        if size > LargeCache::LONGEST.bytes().0 {
            return null_mut();
        }
        let pages = Pages(size.div_ceil(PAGE_SIZE) as u32);
        self.take_large_kept(pages, Pages(1)).map_or(null_mut(), |span| self.address(span.first))
    }
}
