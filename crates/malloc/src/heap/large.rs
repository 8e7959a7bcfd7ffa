//! Large objects: whole pages of the page heap, and those in front of it.
//!
//! **What.** A freed span may wait in the cache of long spans for the next object of its length, which then costs no lock. To the page
//! heap it is out meanwhile.
//!
//! **State.** The first page of a large object is marked so in the page map, and its record holds the length; of a freed one the record
//! keeps it for the report of a second free, until something else begins there.

use super::{Heap, trace};
use crate::hooks::Hooks;
use crate::report;
use crate::route::Misuse;
use crate::segment::{self, SEGMENT};
use crate::size_class::LARGE;
use crate::{background, nested};
use core::ptr::null_mut;
use craton_base::{Clock, Density, Floor, HugePages, PAGE_SIZE, PageId, PageRange, Pages, Span, SpanError};
use craton_os::process;
use craton_pages::LargeCache;

/// Of so many large objects one makes somebody think of the time.
const LOOKS: u64 = 64;

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Takes a span for a large object; `Span::zeroed` says whether it reads as zeros.
    pub(crate) fn take_large(&self, pages: Pages, align: Pages) -> Result<Span, SpanError> {
        if let Some(range) = self.take_large_kept(pages, align) {
            return Ok(Span { range, zeroed: false });
        }
        let span = self.take_span(pages, align, Density::Sparse)?;
        self.begin_large(span.range);
        Ok(span)
    }

    /// Takes a span for a large object that another one left a moment ago, with whatever is in it; takes no lock.
    #[inline]
    pub(crate) fn take_large_kept(&self, pages: Pages, align: Pages) -> Option<PageRange> {
        let range = self.large.take(process::cpu(), pages, align)?;
        self.begin_large(range);
        Some(range)
    }

    fn begin_large(&self, span: PageRange) {
        self.layout().records[span.first.0 as usize].set_pages(span.len);
        self.set_marks(span, LARGE, false);
        // Objects that come and go leave the page heap alone, and with it what is done in passing there.
        if segment::add(&SEGMENT.large_allocs, 1).is_multiple_of(LOOKS) {
            background::note_time();
        }
    }

    /// Pages of freed large objects that may be kept: half a MiB and one part in 256 of what is in use. They go back before the heap grows.
    fn most_large_kept(&self) -> Pages {
        Pages(64 + self.in_use().0 / 256)
    }

    /// Length of the large object that begins at a page marked so.
    pub(crate) fn large_pages(&self, first: PageId) -> Pages {
        self.layout().records[first.0 as usize].pages()
    }

    /// The first page of the large object that begins at an address, if one does.
    #[inline]
    pub(crate) fn large_at(&self, address: usize) -> Option<PageId> {
        let page = self.page_of(address)?;
        (self.mark(page) == LARGE && address.is_multiple_of(PAGE_SIZE)).then_some(page)
    }

    /// Gives a large object's span back; says whether that took the page heap. Leaves `errno` alone.
    pub(crate) fn give_large(&self, first: PageId) -> bool {
        let record = &self.layout().records[first.0 as usize];
        let span = PageRange::new(first, record.pages());
        if span.len == Pages(0) {
            self.given_twice(first);
        }
        record.set_gone(span.len);
        self.set_marks(span, 0, false);
        let given = self.large.put(process::cpu(), span, self.most_large_kept());
        given.map(|span| self.give_span(span)).is_some()
    }

    /// Another thread was quicker.
    #[cold]
    fn given_twice(&self, first: PageId) -> ! {
        report::misuse("free", self.address(first), self.freed_large(first).unwrap_or(Misuse::Unallocated))
    }

    /// What is wrong with a pointer to a page where a large object began that was freed.
    pub(crate) fn freed_large(&self, page: PageId) -> Option<Misuse> {
        self.record(page).gone().map(|pages| Misuse::Freed { size: pages.bytes().0 })
    }

    #[cold]
    fn give_span(&self, span: PageRange) {
        let saved = process::errno();
        let given = nested::within(|| self.with_pages(|p| trace::free(p, span, Density::Sparse)));
        self.expect_given(span, given);
        process::set_errno(saved);
    }

    /// How much of a large object can be moved elsewhere.
    pub(crate) fn movable(&self, span: PageRange) -> HugePages {
        self.pages.lock().movable(span)
    }

    /// Gives a large object's span back whose whole hugepages were moved elsewhere.
    pub(crate) fn give_moved_large(&self, first: PageId) {
        let record = &self.layout().records[first.0 as usize];
        let span = PageRange::new(first, record.pages());
        record.set_gone(span.len);
        self.set_marks(span, 0, false);
        let given = self.with_pages(|p| trace::free_moved(p, span));
        self.expect_given(span, given);
    }

    /// Makes a large object longer or shorter where it stands.
    pub(crate) fn resize_large(&self, first: PageId, pages: Pages) -> Result<(), SpanError> {
        let record = &self.layout().records[first.0 as usize];
        self.with_pages(|p| self.resize_span(p, PageRange::new(first, record.pages()), pages))?;
        record.set_pages(pages);
        Ok(())
    }

    /// Memory for a large object without asking the page heap, aligned to a page; null when none is at hand.
    #[inline]
    pub(crate) fn large_at_hand(&self, size: usize) -> *mut u8 {
        if size > LargeCache::LONGEST.bytes().0 {
            return null_mut();
        }
        let pages = Pages(size.div_ceil(PAGE_SIZE) as u32);
        self.take_large_kept(pages, Pages(1)).map_or(null_mut(), |span| self.address(span.first))
    }

    /// Takes a large object back, if one begins at the address; says whether one did. Leaves `errno` alone.
    #[inline]
    pub(crate) fn free_large(&self, address: usize) -> bool {
        let Some(first) = self.large_at(address) else { return false };
        if self.give_large(first) {
            let saved = process::errno();
            background::poke_in_free();
            process::set_errno(saved);
        }
        true
    }
}
