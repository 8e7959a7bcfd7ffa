//! Runs of pages that a heap of its own cuts its slabs from.
//!
//! **What.** A chunk is one span of the page heap, of at most a hugepage, with a set of the pages that slabs have. A heap that is
//! destroyed gives chunks back, not slabs, and its slabs share no hugepage line by line with those of others.
//!
//! **State.** A table ordered by first page, in a mapping of its own that doubles; zeros are an empty one.
//!
//! **Invariants.** H1 chunks do not overlap; H2 pages behind a chunk's end count as taken; H3 no chunk before `cursor` has a free page.
//!
//! **Cost.** A search looks at the chunks from the first that may have room on; a page's chunk is found by bisection.
//!
//! **Unsafe.** Keeps its table in a mapping.

use core::slice;
use craton_base::{NoMemory, PAGES_PER_HUGEPAGE, PageBits, PageId, PageRange, Pages};
use craton_os::{mapping, process};

/// One span that slabs are cut from.
#[derive(Clone, Copy)]
pub(crate) struct Chunk {
    pub(crate) range: PageRange,
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

    /// Where `pages` free pages begin at a multiple of `align`.
    fn find(&self, pages: Pages, align: Pages) -> Option<u32> {
        self.taken.clear_runs().find_map(|(at, len)| {
            let first = (self.range.first.0 + at).next_multiple_of(align.0) - self.range.first.0;
            (first + pages.0 <= at + len).then_some(first)
        })
    }
}

/// All chunks of one heap.
pub(crate) struct Chunks {
    first: *mut Chunk,
    len: usize,
    capacity: usize,
    cursor: usize,
}

// SAFETY: the table owns its mapping.
unsafe impl Send for Chunks {}

impl Chunks {
    #[cfg(test)]
    pub(crate) const EMPTY: Self = Self { first: core::ptr::null_mut(), len: 0, capacity: 0, cursor: 0 };

    /// The chunks, by address.
    pub(crate) fn all(&self) -> &[Chunk] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the first `len` entries of the mapping have been written.
        unsafe { slice::from_raw_parts(self.first, self.len) }
    }

    fn all_mut(&mut self) -> &mut [Chunk] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as above, and `&mut self` makes the access the only one.
        unsafe { slice::from_raw_parts_mut(self.first, self.len) }
    }

    /// Takes `pages` pages at a multiple of `align` out of a chunk that has them.
    pub(crate) fn take(&mut self, pages: Pages, align: Pages) -> Option<PageRange> {
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

    /// Gives pages of a chunk back; the chunk, if no page of it is in use any more, and others remain.
    pub(crate) fn put(&mut self, range: PageRange) -> Option<PageRange> {
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

    /// The last chunk, if there is just one and no page of it is in use.
    pub(crate) fn take_empty(&mut self) -> Option<PageRange> {
        let [only] = self.all() else { return None };
        let range = only.is_empty().then_some(only.range)?;
        self.clear();
        Some(range)
    }

    /// Makes room for one more chunk, so that the next `add` cannot fail.
    pub(crate) fn prepare(&mut self) -> Result<(), NoMemory> {
        if self.len < self.capacity {
            return Ok(());
        }
        let bytes = (2 * self.bytes()).max(process::page_size());
        let first = mapping::map(bytes, 1).ok_or(NoMemory)? as *mut Chunk;
        // SAFETY: the new mapping holds more entries than the old one has.
        unsafe { first.copy_from_nonoverlapping(self.all().as_ptr(), self.len) };
        self.unmap();
        (self.first, self.capacity) = (first, bytes / size_of::<Chunk>());
        Ok(())
    }

    /// Adds a chunk of at most a hugepage, for which `prepare` has made room.
    pub(crate) fn add(&mut self, range: PageRange) {
        debug_assert!(self.len < self.capacity && range.len.0 <= PAGES_PER_HUGEPAGE);
        // SAFETY: `prepare` has seen to it that the mapping has a place more.
        unsafe { self.first.add(self.len).write(Chunk::new(range)) };
        self.len += 1;
        let i = self.all().partition_point(|c| c.range.first.0 < range.first.0).min(self.len - 1);
        self.all_mut()[i..].rotate_right(1);
        self.cursor = 0;
    }

    /// Forgets all chunks, which the caller has given back. A small table stays for the next ones.
    pub(crate) fn clear(&mut self) {
        (self.len, self.cursor) = (0, 0);
        if self.bytes() > process::page_size() {
            self.unmap();
            (self.first, self.capacity) = (core::ptr::null_mut(), 0);
        }
    }

    /// Bytes of the table's mapping.
    fn bytes(&self) -> usize {
        (self.capacity * size_of::<Chunk>()).next_multiple_of(process::page_size())
    }

    fn unmap(&mut self) {
        if self.capacity > 0 {
            mapping::unmap(self.first as usize, self.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, len: u32) -> PageRange {
        PageRange::new(PageId(first), Pages(len))
    }

    fn with(ranges: &[(u32, u32)]) -> Chunks {
        let mut chunks = Chunks::EMPTY;
        for (first, len) in ranges {
            chunks.prepare().unwrap();
            chunks.add(range(*first, *len));
        }
        chunks
    }

    #[test]
    fn h2_pages_come_from_inside_a_chunk_aligned_as_pages_of_the_region() {
        let mut chunks = with(&[(96, 32)]);
        assert_eq!(chunks.take(Pages(1), Pages(1)), Some(range(96, 1)));
        assert_eq!(chunks.take(Pages(8), Pages(8)), Some(range(104, 8)));
        assert_eq!(chunks.take(Pages(17), Pages(1)), None);
        assert_eq!(chunks.take(Pages(16), Pages(16)), Some(range(112, 16)));
        assert_eq!(chunks.take(Pages(7), Pages(1)), Some(range(97, 7)));
        assert_eq!(chunks.take(Pages(1), Pages(1)), None);
    }

    #[test]
    fn h1_a_chunk_leaves_with_its_last_page_but_one_stays() {
        let mut chunks = with(&[(512, 256), (0, 32), (1024, 64)]);
        assert!(chunks.all().is_sorted_by_key(|c| c.range.first.0));
        let all: Vec<_> = core::iter::from_fn(|| chunks.take(Pages(4), Pages(4))).collect();
        assert_eq!(all.len(), (256 + 32 + 64) / 4);
        let mut left: Vec<_> = all.iter().filter_map(|r| chunks.put(*r)).collect();
        left.sort_by_key(|r| r.first.0);
        assert_eq!(left, [range(0, 32), range(512, 256)], "the last one that came free stays");
        assert_eq!(chunks.take(Pages(64), Pages(64)), Some(range(1024, 64)));
        assert_eq!((chunks.take_empty(), chunks.put(range(1024, 64))), (None, None));
        assert_eq!((chunks.take_empty(), chunks.take_empty()), (Some(range(1024, 64)), None));
    }

    #[test]
    fn h3_many_chunks_are_kept_in_order_while_the_table_grows() {
        let order: Vec<_> = (0..500).map(|i| (i * 7919 % 500 * 256, 256)).collect();
        let mut chunks = with(&order);
        assert!(chunks.all().is_sorted_by_key(|c| c.range.first.0) && chunks.all().len() == 500);
        for i in 0..500 {
            assert_eq!(chunks.take(Pages(256), Pages(1)), Some(range(i * 256, 256)));
        }
        assert_eq!(chunks.put(range(300 * 256, 256)), Some(range(300 * 256, 256)));
        assert_eq!(chunks.take(Pages(1), Pages(1)), None);
        chunks.clear();
        assert!(chunks.all().is_empty());
    }

    use std::vec::Vec;
}
