//! Runs of pages that a heap cuts its slabs from: each one span of at most a hugepage.
//!
//! **Invariants.** *H1* chunks do not overlap; *H2* pages behind a chunk's end count as taken; *H3*
//! no chunk before `cursor` has a free page.
//!
//! **Unsafe.** Keeps its table in a mapping.

use core::slice;
use craton_base::{NoMemory, PAGES_PER_HUGEPAGE, PageBits, PageId, PageRange, Pages};
use craton_os::{mapping, process};

#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) range: PageRange,
    taken: PageBits,
}

impl Chunk {
    fn new(range: PageRange) -> Self {
        let mut taken = PageBits::EMPTY;
        taken.insert(range.len.0, PAGES_PER_HUGEPAGE - range.len.0);
        Self { range, taken }
    }

    fn is_full(&self) -> bool {
        self.taken == PageBits::ALL
    }

    fn is_empty(&self) -> bool {
        !self.taken.any(0, self.range.len.0)
    }

    fn find(&self, pages: Pages, align: Pages) -> Option<u32> {
        self.taken.clear_runs().find_map(|(at, len)| {
            let first = (self.range.first.0 + at).next_multiple_of(align.0) - self.range.first.0;
            (first + pages.0 <= at + len).then_some(first)
        })
    }
}

pub(super) struct Chunks {
    first: *mut Chunk,
    len: usize,
    capacity: usize,
    cursor: usize,
}

// SAFETY: it owns its mapping.
unsafe impl Send for Chunks {}

impl Chunks {
    #[cfg(test)]
    pub(super) const EMPTY: Self = Self { first: core::ptr::null_mut(), len: 0, capacity: 0, cursor: 0 };

    pub(super) fn all(&self) -> &[Chunk] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the first `len` entries were written.
        unsafe { slice::from_raw_parts(self.first, self.len) }
    }

    fn all_mut(&mut self) -> &mut [Chunk] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above; `&mut self` excludes others.
        unsafe { slice::from_raw_parts_mut(self.first, self.len) }
    }

    pub(super) fn alloc(&mut self, pages: Pages, align: Pages) -> Option<PageRange> {
        while self.all().get(self.cursor).is_some_and(Chunk::is_full) {
            self.cursor += 1;
        }
        let cursor = self.cursor;
        self.all_mut()[cursor..].iter_mut().find_map(|chunk| {
            let at = chunk.find(pages, align)?;
            chunk.taken.insert(at, pages.0);
            Some(PageRange::new(PageId(chunk.range.first.0 + at), pages))
        })
    }

    /// Returns the chunk if it is empty and others remain.
    pub(super) fn free(&mut self, range: PageRange) -> Option<PageRange> {
        let i = self.all().partition_point(|c| c.range.end().0 <= range.first.0);
        self.cursor = self.cursor.min(i);
        let chunk = &mut self.all_mut()[i];
        chunk.taken.remove(range.first.0 - chunk.range.first.0, range.len.0);
        let (whole, empty) = (chunk.range, chunk.is_empty());
        if !empty || self.len == 1 {
            return None;
        }
        self.all_mut()[i..].rotate_left(1);
        self.len -= 1;
        Some(whole)
    }

    pub(super) fn take_empty(&mut self) -> Option<PageRange> {
        let [only] = self.all() else { return None };
        let range = only.is_empty().then_some(only.range)?;
        self.clear();
        Some(range)
    }

    /// The next `add` cannot fail.
    pub(super) fn prepare(&mut self) -> Result<(), NoMemory> {
        if self.len < self.capacity {
            return Ok(());
        }
        let bytes = (2 * self.bytes()).max(process::page_size());
        let first = mapping::map(bytes, 1).ok_or(NoMemory)? as *mut Chunk;
        // SAFETY: the new mapping holds more entries.
        unsafe { first.copy_from_nonoverlapping(self.all().as_ptr(), self.len) };
        self.unmap();
        (self.first, self.capacity) = (first, bytes / size_of::<Chunk>());
        Ok(())
    }

    pub(super) fn add(&mut self, range: PageRange) {
        debug_assert!(self.len < self.capacity && range.len.0 <= PAGES_PER_HUGEPAGE);
        // SAFETY: `prepare` made room.
        unsafe { self.first.add(self.len).write(Chunk::new(range)) };
        self.len += 1;
        let i = self.all().partition_point(|c| c.range.first.0 < range.first.0).min(self.len - 1);
        self.all_mut()[i..].rotate_right(1);
        self.cursor = 0;
    }

    /// The caller freed the chunks.
    pub(super) fn clear(&mut self) {
        (self.len, self.cursor) = (0, 0);
        if self.bytes() > process::page_size() {
            self.unmap();
            (self.first, self.capacity) = (core::ptr::null_mut(), 0);
        }
    }

    fn bytes(&self) -> usize {
        (self.capacity * size_of::<Chunk>()).next_multiple_of(process::page_size())
    }

    fn unmap(&mut self) {
        if self.capacity > 0 {
            mapping::unmap(self.first as usize, self.bytes());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
