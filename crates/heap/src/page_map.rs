//! The page map: which size class each page of the region belongs to.
//!
//! **What.** A mark of four bytes for each page: the size class,
//! [`LARGE`](crate::size_class::LARGE) for the first page of a large object,
//! [`MORPHED`](crate::size_class::MORPHED) for a slab of two classes, or 0 (free pages, the inside
//! of objects). It is stored as the offset of the class's list in a cache, so that free finds the
//! list by one load and one addition. `free` reads the map before any memory behind the pointer.
//!
//! **Threads.** The pages' owner writes, before the first object goes out and after the last
//! returns. Any thread reads, with relaxed loads: it got its object of the page through a
//! synchronising hand-over.
//!
//! **Unsafe.** Indexes the map by address, within the granted pages.

use craton_base::atomic::{AtomicU32, Ordering::Relaxed};
use craton_base::{PageId, PageRange};

/// Bytes of a thread cache's list: the factor of a stored mark.
pub const LIST_BYTES: usize = 32;

/// The map: a pointer to the mark of page 0.
#[derive(Clone, Copy, Debug)]
pub struct PageMap {
    marks: *const AtomicU32,
}

// SAFETY: the marks are atomic and never unmapped.
unsafe impl Send for PageMap {}
// SAFETY: as above.
unsafe impl Sync for PageMap {}

impl PageMap {
    /// Offset of the first mark's address, for readers of another process's memory.
    pub const MARKS: usize = core::mem::offset_of!(Self, marks);

    /// A map that must not be read.
    pub const EMPTY: Self = Self { marks: core::ptr::null() };

    /// A map whose marks begin at `marks`.
    ///
    /// # Safety
    /// Each granted page has a permanent four-byte entry, zero at first, which only this map
    /// writes.
    pub const unsafe fn new(marks: *const AtomicU32) -> Self {
        Self { marks }
    }

    /// The offset, in a cache, of the list for a page's mark.
    ///
    /// # Safety
    /// The page has been granted.
    #[inline(always)]
    pub unsafe fn list(self, page: usize) -> usize {
        // SAFETY: granted pages have a mark.
        unsafe { (*self.marks.add(page)).load(Relaxed) as usize }
    }

    /// The mark of a page.
    ///
    /// # Safety
    /// The page has been granted.
    #[inline(always)]
    pub unsafe fn get(self, page: usize) -> u8 {
        // SAFETY: by the contract.
        unsafe { (self.list(page) / LIST_BYTES) as u8 }
    }

    /// Marks the first page of a span, and the others too if `all`.
    ///
    /// # Safety
    /// The pages have been granted, and belong to the caller.
    pub unsafe fn set(self, range: PageRange, mark: u8, all: bool) {
        let entry = (mark as usize * LIST_BYTES) as u32;
        let pages = if all { range.len.0 } else { 1 };
        for i in range.first.0..range.first.0 + pages {
            // SAFETY: by the contract.
            unsafe { (*self.marks.add(i as usize)).store(entry, Relaxed) };
        }
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
