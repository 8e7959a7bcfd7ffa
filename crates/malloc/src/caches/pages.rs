//! What is known of each page of caches, and where their slabs have them from.
//!
//! **State.** An entry of 256 bytes for each page of the region, in one reservation that is made for the first cache:
//! ```text
//! | handle of the cache, once an object on the page was handed out | address of the first object of the slab | 128 marks | … |
//! ```
//! An object that has no room for its mark has it in its page's entry: one for each 64 bytes.
//!
//! **Unsafe.** Indexes the entries by page, and supplies slabs with spans.

use super::{CLASS, slot::Cache};
use crate::heap::Heap;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use craton_base::{Clock, Density, Floor, PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages};
use craton_os::mapping;
use craton_slab::object::PageSupplier;

/// Bytes that one mark stands for.
const GRANULE: usize = 64;
const MARKS: usize = PAGE_SIZE / GRANULE;

/// One page of a cache.
#[repr(C, align(256))]
pub(super) struct Entry {
    /// The cache's handle; 0 until an object that begins on the page was handed out.
    pub(super) cache: AtomicUsize,
    /// Where the first object of the slab lies.
    pub(super) first: AtomicUsize,
    marks: [AtomicU8; MARKS],
}

impl Entry {
    /// The mark of an object on this page.
    #[inline(always)]
    pub(super) fn mark(&self, object: *mut u8) -> &AtomicU8 {
        &self.marks[object as usize % PAGE_SIZE / GRANULE]
    }
}

/// The entries of all pages.
pub(super) struct Entries {
    first: AtomicUsize,
    /// Address of page 0.
    base: AtomicUsize,
    pages: AtomicUsize,
}

impl Entries {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with.
    pub(super) const NONE: Self = Self { first: AtomicUsize::new(0), base: AtomicUsize::new(0), pages: AtomicUsize::new(0) };

    /// Reserves the entries, once; under the table's lock.
    pub(super) fn reserve<F: Floor, C: Clock>(&self, under: &Heap<F, C>) -> Option<()> {
        if self.first.load(Relaxed) == 0 {
            let pages = under.layout().records.len();
            let bytes = pages * size_of::<Entry>();
            let at = mapping::map(bytes, align_of::<Entry>())?;
            mapping::advise_small(at, bytes);
            self.base.store(under.layout().base, Relaxed);
            self.first.store(at, Relaxed);
            self.pages.store(pages, Relaxed);
        }
        Some(())
    }

    /// The entry of the page that holds an address; `None` outside of the region.
    #[inline(always)]
    pub(super) fn of(&self, address: usize) -> Option<&Entry> {
        let page = address.wrapping_sub(self.base.load(Relaxed)) >> PAGE_SHIFT;
        if page >= self.pages.load(Relaxed) {
            return None;
        }
        // SAFETY: there is an entry for each page of the region, zeros at first.
        Some(unsafe { &*(self.first.load(Relaxed) as *const Entry).add(page) })
    }

    fn forget(&self, first: *mut u8, pages: Pages) {
        for page in 0..pages.0 as usize {
            if let Some(entry) = self.of(first as usize + page * PAGE_SIZE)
                && entry.cache.load(Relaxed) != 0
            {
                entry.cache.store(0, Relaxed);
                entry.first.store(0, Relaxed);
                entry.marks.iter().for_each(|mark| mark.store(0, Relaxed));
            }
        }
    }
}

/// The page heap as one cache's slabs see it.
pub(super) struct Supply<'a, F: Floor, C: Clock> {
    under: &'a Heap<F, C>,
    id: u16,
    limit: Pages,
    held: &'a mut Pages,
}

impl Cache {
    /// The slabs, and where they have their pages from.
    pub(super) fn supplied<'a, F: Floor, C: Clock>(
        &'a mut self,
        under: &'a Heap<F, C>,
    ) -> (&'a mut craton_slab::object::ObjectSlabs, Supply<'a, F, C>) {
        (&mut self.slabs, Supply { under, id: self.id, limit: self.limit_pages, held: &mut self.held })
    }
}

// SAFETY: spans are nobody else's until they are given back; the region begins at a multiple of every alignment that is asked for, so
// that a span that is aligned in it is aligned.
unsafe impl<F: Floor, C: Clock> PageSupplier for Supply<'_, F, C> {
    fn get(&mut self, pages: Pages, align: Pages) -> Option<*mut u8> {
        if self.limit != Pages(0) && u64::from(self.held.0) + u64::from(pages.0) > u64::from(self.limit.0) {
            return None;
        }
        let range = self.under.take_own(pages, align, Density::Dense).ok()?.range;
        self.under.mark_own(range, true, self.id, CLASS);
        self.held.0 += pages.0;
        Some(self.under.address(range.first))
    }

    unsafe fn put(&mut self, first: *mut u8, pages: Pages) {
        self.under.caches.entries.forget(first, pages);
        let page = (first as usize - self.under.layout().base) >> PAGE_SHIFT;
        let range = PageRange::new(PageId(page as u32), pages);
        self.under.unmark_own(range, true);
        self.held.0 -= pages.0;
        self.under.give_own(range);
    }
}
