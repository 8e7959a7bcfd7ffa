//! Pages for the compared allocators: runs, the lowest first, named by offset.
//!
//! **Unsafe.** Owns the memory, and reads and writes it.

use craton_base::PAGE_SIZE;
use craton_slab::object::PageSupplier;
use std::alloc::Layout;

pub(super) const NONE: usize = usize::MAX;
/// The largest aligned run.
const ALIGN: usize = 64 * PAGE_SIZE;

#[derive(Debug)]
pub struct Arena {
    base: *mut u8,
    memory: *mut u8,
    used: Vec<bool>,
    count: usize,
    page: usize,
    /// No page before this one is free.
    least: usize,
}

// SAFETY: the memory is the arena's alone.
unsafe impl Send for Arena {}

impl Arena {
    /// Without physical memory until use.
    pub fn new(pages: usize) -> Self {
        Self::with_pages(pages, PAGE_SIZE)
    }

    /// `page`: a power of two up to 8 KiB.
    pub fn with_pages(pages: usize, page: usize) -> Self {
        assert!(page.is_power_of_two() && page <= PAGE_SIZE, "pages of {page} bytes");
        let layout = Self::layout(pages * page);
        // SAFETY: the layout has a size.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        if memory.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        let base = memory.wrapping_add((memory as usize).wrapping_neg() % ALIGN);
        Self { base, memory, used: vec![false; pages], count: 0, page, least: 0 }
    }

    fn layout(bytes: usize) -> Layout {
        assert!(bytes > 0, "an arena has at least one page");
        // By hand: memory of a large alignment would be cleared by writing.
        Layout::from_size_align(bytes + ALIGN, 8).expect("an arena is smaller than the address space")
    }

    pub fn pages(&self) -> usize {
        self.used.len()
    }

    pub fn consumed(&self) -> usize {
        self.count * self.page
    }

    /// The lowest whose first page is a multiple of `align`, a power of two up to 64.
    pub(super) fn get(&mut self, pages: usize, align: usize) -> Option<usize> {
        let mut at = self.least.next_multiple_of(align);
        loop {
            let run = self.used.get(at..at + pages)?;
            match run.iter().rposition(|used| *used) {
                Some(used) => at = (at + used + 1).next_multiple_of(align),
                None => break,
            }
        }
        self.used[at..at + pages].fill(true);
        self.count += pages;
        while self.used.get(self.least) == Some(&true) {
            self.least += 1;
        }
        Some(at * self.page)
    }

    pub(super) fn put(&mut self, at: usize, pages: usize) {
        let first = at / self.page;
        let run = &mut self.used[first..first + pages];
        assert!(run.iter().all(|used| *used), "{pages} pages from {first} on are not all out");
        run.fill(false);
        self.count -= pages;
        self.least = self.least.min(first);
    }

    #[inline]
    pub(super) fn pointer(&self, at: usize) -> *mut u8 {
        self.base.wrapping_add(at)
    }

    #[inline]
    pub(super) fn offset(&self, at: *mut u8) -> usize {
        at as usize - self.base as usize
    }

    #[inline]
    pub(super) fn word(&self, at: usize) -> usize {
        self.assert_inside(at);
        // SAFETY: the word lies in the arena.
        unsafe { self.base.add(at).cast::<usize>().read() }
    }

    /// At a multiple of 8, in free memory.
    #[inline]
    pub(super) fn set_word(&mut self, at: usize, value: usize) {
        self.assert_inside(at);
        // SAFETY: the word lies in the arena.
        unsafe { self.base.add(at).cast::<usize>().write(value) }
    }

    #[inline]
    fn assert_inside(&self, at: usize) {
        assert!(at < self.used.len() * self.page && at.is_multiple_of(8), "{at:#x} is no word of the arena");
    }
}

// SAFETY: free pages of the arena, aligned as their numbers up to 64 pages.
unsafe impl PageSupplier for Arena {
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8> {
        assert!(align <= ALIGN, "{align} bytes are more than an arena aligns to");
        let at = Self::get(self, bytes / self.page, align / self.page)?;
        Some(self.pointer(at))
    }

    unsafe fn put(&mut self, first: *mut u8, bytes: usize) {
        let at = self.offset(first);
        Self::put(self, at, bytes / self.page);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.memory, Self::layout(self.used.len() * self.page)) }
    }
}
