//! The page map: what each page of the region belongs to.
//!
//! **What.** Four bytes for each page, its mark: the size class of its objects, [`LARGE`](crate::size_class::LARGE) for the first page
//! of a large object, [`MORPHED`](crate::size_class::MORPHED) where objects of two classes lie, 0 for everything else (free pages, and the inside of objects of several pages). A mark is kept as the distance from
//! a cache's start to the list of the class, so that free reaches the list by one load and one addition. The map is consulted before
//! any memory behind a pointer is touched.
//!
//! **Threads.** Written by whoever owns the pages, before the first object is given out and after the last came back; read
//! by any thread. A thread can only ask for a page of which it holds an object, and it got that object through a
//! synchronising hand-over, so relaxed accesses suffice.
//!
//! **Unsafe.** Indexes the map by address, within the pages that the floor granted.

use craton_base::atomic::{AtomicU32, Ordering::Relaxed};
use craton_base::{PageId, PageRange};

/// Bytes from one list of a thread cache to the next: what a mark is multiplied by, so that `free` reaches the list by one
/// addition.
pub const LIST_BYTES: usize = 32;

/// The map, as a pointer to the mark of page 0.
#[derive(Clone, Copy, Debug)]
pub struct PageMap {
    marks: *const AtomicU32,
}

// SAFETY: the marks are atomic and live for ever.
unsafe impl Send for PageMap {}
// SAFETY: as above.
unsafe impl Sync for PageMap {}

impl PageMap {
    /// Where a map keeps the address of its first mark, in bytes, for those who read the memory of another process.
    pub const MARKS: usize = core::mem::offset_of!(Self, marks);

    /// A map that must not be asked.
    pub const EMPTY: Self = Self { marks: core::ptr::null() };

    /// A map whose marks begin at `marks`.
    ///
    /// # Safety
    /// There is a zero entry of four bytes for each page as soon as it is granted, for ever, written through this map only.
    pub const unsafe fn new(marks: *const AtomicU32) -> Self {
        Self { marks }
    }

    /// How far from a cache's start the list for a page's mark lies.
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
