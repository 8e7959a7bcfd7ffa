//! The page map: each page's size class, and which of its objects may be freed.
//!
//! **State.** An [`Entry`] of four bytes for each page:
//! ```text
//! | cut places of the slab (16 bits) | mark × LIST_BYTES (16 bits) |
//! ```
//! The mark is the size class, [`LARGE`](crate::size_class::LARGE) for the first page of a large
//! object, [`MORPHED`](crate::size_class::MORPHED) for a slab of two classes, or 0 (free pages, the
//! inside of objects). It is stored as the offset of the class's list in a cache, so that free
//! finds the list by one load and one addition.
//!
//! **Invariants.** *M6* a place of a slab is cut exactly if its index is below the number of the
//! page on which it begins, but for a sample and the places behind it on its page
//! ([`crate::sampled`], M8). So a refill changes only the pages of the places that it cuts. *M7*
//! the number is 0 where the mark is no class.
//!
//! **Threads.** The pages' owner writes, before an object goes out and after the last returns. Any
//! thread reads, with relaxed loads: it got its object of the page through a synchronising
//! hand-over. Mark and number change in one store.
//!
//! **Unsafe.** Indexes the map by address, within the granted pages.

use craton_base::atomic::{AtomicU32, Ordering::Relaxed};
use craton_base::{PageId, PageRange};

/// Bytes of a thread cache's list: the factor of a stored mark.
pub const LIST_BYTES: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(u32);

/// Bits that hold the offset of a list.
const LIST_BITS: u32 = 16;

impl Entry {
    const fn of_mark(mark: u8) -> Self {
        Self(mark as u32 * LIST_BYTES as u32)
    }

    pub(crate) const fn with_cut(self, places: u16) -> Self {
        Self(self.list() as u32 | (places as u32) << LIST_BITS)
    }

    /// The offset, in a cache, of the list for the mark.
    #[inline(always)]
    pub const fn list(self) -> usize {
        self.0 as u16 as usize
    }

    #[inline(always)]
    pub const fn mark(self) -> u8 {
        (self.list() / LIST_BYTES) as u8
    }

    /// Cut places, times [`PLACE`].
    #[inline(always)]
    pub const fn cut(self) -> u64 {
        (self.0 & !(u16::MAX as u32)) as u64
    }
}

/// A place's factor in [`Entry::cut`].
pub const PLACE: u64 = 1 << LIST_BITS;

#[derive(Clone, Copy, Debug)]
pub struct PageMap {
    marks: *const AtomicU32,
}

// SAFETY: the marks are atomic and never unmapped.
unsafe impl Send for PageMap {}
// SAFETY: as above.
unsafe impl Sync for PageMap {}

impl PageMap {
    /// For readers of another process's memory.
    pub const MARKS: usize = core::mem::offset_of!(Self, marks);

    /// The lower bits of an entry, which hold the mark.
    pub const MARK_BITS: usize = LIST_BITS as usize;

    /// A map that must not be read.
    pub const EMPTY: Self = Self { marks: core::ptr::null() };

    /// # Safety
    /// Each granted page has a permanent four-byte entry, zero at first, written only here.
    pub const unsafe fn new(marks: *const AtomicU32) -> Self {
        Self { marks }
    }

    /// # Safety
    /// The page has been granted.
    #[inline(always)]
    pub unsafe fn entry(self, page: usize) -> Entry {
        // SAFETY: granted pages have an entry.
        Entry(unsafe { (*self.marks.add(page)).load(Relaxed) })
    }

    /// # Safety
    /// The page has been granted.
    #[inline(always)]
    pub unsafe fn get(self, page: usize) -> u8 {
        // SAFETY: by the contract.
        unsafe { self.entry(page) }.mark()
    }

    /// Marks the first page of a span, and the others too if `all`; no place is cut.
    ///
    /// # Safety
    /// The pages have been granted, and belong to the caller.
    pub unsafe fn set(self, range: PageRange, mark: u8, all: bool) {
        let pages = if all { range.len.0 } else { 1 };
        for page in range.first.0..range.first.0 + pages {
            // SAFETY: by the contract.
            unsafe { self.store(page as usize, Entry::of_mark(mark)) };
        }
    }

    /// Sets the number of cut places on those pages that bear the class's mark. A private heap's
    /// slab has none.
    ///
    /// # Safety
    /// As [`PageMap::set`].
    pub unsafe fn set_cut(self, range: PageRange, class: u8, places: u16) {
        for page in range.first.0..range.first.0 + range.len.0 {
            // SAFETY: by the contract.
            unsafe {
                let entry = self.entry(page as usize);
                if entry.mark() == class {
                    self.store(page as usize, entry.with_cut(places));
                }
            }
        }
    }

    /// # Safety
    /// As [`PageMap::set`].
    unsafe fn store(self, page: usize, entry: Entry) {
        // SAFETY: granted pages have an entry.
        unsafe { (*self.marks.add(page)).store(entry.0, Relaxed) };
    }

    /// The last marked page at or before `page`, and its mark.
    ///
    /// # Safety
    /// The page has been granted.
    pub unsafe fn marked_before(self, page: PageId) -> Option<(PageId, u8)> {
        (0..=page.0).rev().find_map(|i| {
            // SAFETY: pages before a granted one are granted.
            let mark = unsafe { self.get(i as usize) };
            (mark != 0).then_some((PageId(i), mark))
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
