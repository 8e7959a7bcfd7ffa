//! Large objects: whole pages of the page heap, and freed ones kept in front of it.
//!
//! **What.** A freed span may wait in the large cache for the next object of its length, without a
//! lock. To the page heap it is in use.
//!
//! **State.** The page map marks the first page, whose record holds the length. The record keeps it
//! after a free, to report a double free, until another span begins there.
//!
//! **Guards.** In a hardened heap the last page of a large object's span is a guard page. It stays
//! while the span is kept, since installing one takes a system call, and goes before page heap or
//! slabs get the span. Where the system has none (Linux before 6.13), and beyond [`MOST_GUARDS`],
//! which bounds the calls at about 1 % of the time, the page is usable.

use crate::heap::Heap;
use crate::hooks::{Damage, Event, Hooks};
use crate::misuse::Misuse;
use crate::size_class::LARGE;
use crate::spans::Kept;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Density, HugePages, Machine, PAGE_SIZE, PageId, PageRange, Pages, Platform, Span, SpanError};
use craton_pages::{LargeCache, PageHeapExt};

/// New guard pages in a period of 2²² ns (4.2 ms). One costs 2 to 3 µs with its removal.
const MOST_GUARDS: u64 = 16;
const GUARD_PERIOD_SHIFT: u32 = 22;

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Allocates a span; `Span::zeroed`: it reads as zeros.
    pub fn take_large(&self, pages: Pages, align: Pages) -> Result<Span, SpanError> {
        let cpu = self.system.cpu();
        let pages = self.with_guard(pages);
        if let Some(range) = self.large.pop_anywhere(cpu, pages, align) {
            self.begin_large(range, cpu);
            return Ok(Span { range, zeroed: false });
        }
        let span = Kept { heap: self }.alloc(pages, align, Density::Sparse)?;
        self.large.count(cpu);
        self.begin_large(span.range, cpu);
        Ok(span)
    }

    /// A kept span, with its old contents; takes no lock.
    #[inline]
    pub fn take_large_kept(&self, pages: Pages, align: Pages) -> Option<PageRange> {
        let cpu = self.system.cpu();
        let range = self.large.pop(cpu, self.with_guard(pages), align)?;
        self.begin_large(range, cpu);
        Some(range)
    }

    #[inline]
    fn begin_large(&self, span: PageRange, cpu: usize) {
        if self.is_hardened() {
            self.begin_guarded(span);
        } else {
            self.length(span.first).set_pages(span.len);
        }
        self.set_marks(span, LARGE, false);
        self.large.report(cpu, |objects| H::event(Event::LargeAllocs(objects)));
    }

    #[inline]
    fn with_guard(&self, pages: Pages) -> Pages {
        Pages(pages.0 + u32::from(self.is_hardened()))
    }

    /// Sets a span's length, and its guard page.
    fn begin_guarded(&self, span: PageRange) {
        let length = self.length(span.first);
        let has_one = length.is_guarded();
        length.set_pages(span.len);
        length.set_guarded(has_one || self.may_guard() && self.shut_last(span, true));
    }

    /// Counts a new guard page, within the bound for each period.
    fn may_guard(&self) -> bool {
        let period = (self.clock.now_ns() >> GUARD_PERIOD_SHIFT) << 8;
        let counted = self.guards.load(Relaxed);
        // Two threads at once may count one for two.
        let new = if counted & !0xff == period { counted + 1 } else { period + 1 };
        let may = new & 0xff <= MOST_GUARDS;
        if may {
            self.guards.store(new, Relaxed);
        }
        may
    }

    /// Shuts or opens a span's last page; `false` if the system refused.
    fn shut_last(&self, span: PageRange, shut: bool) -> bool {
        let last = PageId(span.first.0 + span.len.0 - 1);
        self.system.shut(self.address(last) as usize, PAGE_SIZE, shut)
    }

    /// Before a freed span serves something else.
    #[inline]
    pub(crate) fn unguard(&self, span: PageRange) -> PageRange {
        let length = self.length(span.first);
        if length.is_guarded() {
            length.set_guarded(false);
            self.shut_last(span, false);
        }
        span
    }

    /// 2 MiB and 1/8 of the use; none above a hard limit. Kept spans go back before the heap grows.
    fn most_large_kept(&self) -> Pages {
        let in_use = self.in_use();
        match self.gate.hard() {
            Some(hard) if in_use.bytes().0 as u64 > hard => Pages(0),
            _ => Pages(256 + in_use.0 / 8),
        }
    }

    pub fn large_pages(&self, first: PageId) -> Pages {
        let length = self.length(first);
        Pages(length.pages().0.saturating_sub(length.is_guarded().into()))
    }

    /// The first page of the large object that begins at an address.
    #[inline]
    pub fn large_at(&self, address: usize) -> Option<PageId> {
        let page = self.page_of(address)?;
        (self.mark(page) == LARGE && address.is_multiple_of(PAGE_SIZE)).then_some(page)
    }

    /// Frees a large object without a lock. Returns a span without room in the cache, for
    /// [`Heap::give_span`].
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

    #[cold]
    fn given_twice(&self, first: PageId) -> ! {
        let misuse = self.freed_large(first).unwrap_or(Misuse::Unallocated);
        H::corrupt(Damage::Object { object: self.address(first), misuse })
    }

    pub fn freed_large(&self, page: PageId) -> Option<Misuse> {
        let (length, guard) = (self.length(page), u32::from(self.length(page).is_guarded()));
        length.gone().map(|pages| Misuse::Freed { size: Pages(pages.0 - guard).bytes().0 })
    }

    #[cold]
    pub fn give_span(&self, span: PageRange) {
        self.unguard(span);
        let mut pages = self.lock_pages();
        let freed = pages.free(span, Density::Sparse);
        // Several at a time take the lock less often.
        let (cpu, most) = (self.system.cpu(), self.most_large_kept());
        let most = Pages(most.0 - most.0 / 8);
        while self.large.is_over(cpu, most)
            && let Some(span) = self.large.evict(cpu)
        {
            let freed = pages.free(self.unguard(span), Density::Sparse);
            debug_assert_eq!(freed, Ok(()), "a cached span is out");
        }
        drop(pages);
        self.expect_given(span, freed);
    }

    /// Whole hugepages that can be moved away.
    pub fn movable(&self, span: PageRange) -> HugePages {
        self.pages.lock().movable(span)
    }

    /// Frees a span whose whole hugepages were moved away.
    pub fn give_moved_large(&self, first: PageId) {
        let length = self.length(first);
        let span = PageRange::new(first, length.pages());
        self.unguard(span);
        length.set_gone(span.len);
        self.set_marks(span, 0, false);
        let given = self.lock_pages().free_moved(span);
        self.expect_given(span, given);
    }

    pub fn resize_large(&self, first: PageId, pages: Pages) -> Result<(), SpanError> {
        let length = self.length(first);
        let span = PageRange::new(first, length.pages());
        if !length.is_guarded() {
            self.lock_pages().resize(span, pages)?;
            length.set_pages(pages);
            return Ok(());
        }
        self.unguard(span);
        let longer = self.with_guard(pages);
        let resized = self.lock_pages().resize(span, longer).map(|_| ());
        self.begin_guarded(if resized.is_ok() { PageRange::new(first, longer) } else { span });
        resized
    }

    /// A kept span for an object aligned to a page; else null.
    #[inline]
    pub fn large_at_hand(&self, size: usize) -> *mut u8 {
        if size > LargeCache::LONGEST.bytes().0 {
            return null_mut();
        }
        let pages = Pages(size.div_ceil(PAGE_SIZE) as u32);
        self.take_large_kept(pages, Pages(1)).map_or(null_mut(), |span| self.address(span.first))
    }
}
