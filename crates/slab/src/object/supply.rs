//! Where the pages of a cache's slabs come from.
//!
//! **From.** Bonwick94 §7.1: the page supplier is a parameter of the cache, so that one allocator manages several kinds of memory.
//!
//! **Unsafe.** Suppliers promise memory; the adapters turn places in a range into addresses.

use craton_base::{Density, FrameSource, PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages, SpanSource};

/// Whoever supplies a cache with pages of 8 KiB.
///
/// # Safety
/// What [`PageSupplier::get`] returns is readable and writable, is nobody else's until it comes back by [`PageSupplier::put`], and
/// begins at a multiple of `align` pages.
pub unsafe trait PageSupplier {
    /// So many pages (1 or more) in a row, whose first byte's address is a multiple of `align` pages (a power of two). `None`:
    /// refused, and nothing has changed. What they contain may be anything.
    fn get(&mut self, pages: Pages, align: Pages) -> Option<*mut u8>;

    /// Takes pages back.
    ///
    /// # Safety
    /// [`PageSupplier::get`] returned `first` for so many pages, and nobody uses them any more.
    unsafe fn put(&mut self, first: *mut u8, pages: Pages);
}

/// Pages of a page heap.
#[derive(Debug)]
pub struct SpanPages<'a, S> {
    source: &'a mut S,
    base: *mut u8,
    density: Density,
}

impl<'a, S: SpanSource> SpanPages<'a, S> {
    /// Pages of `source`. It is told of each that it holds many objects, or few, by `density`.
    ///
    /// # Safety
    /// `base` is the address of the source's page 0, and a multiple of the largest alignment that is asked for; spans of the source
    /// are readable and writable there.
    pub unsafe fn new(source: &'a mut S, base: *mut u8, density: Density) -> Self {
        Self { source, base, density }
    }
}

// SAFETY: by the contract of `new`, spans are memory, and their places are aligned where their numbers are.
unsafe impl<S: SpanSource> PageSupplier for SpanPages<'_, S> {
    fn get(&mut self, pages: Pages, align: Pages) -> Option<*mut u8> {
        let span = self.source.alloc(pages, align, self.density).ok()?;
        Some(self.base.wrapping_add(span.range.first.offset().0))
    }

    unsafe fn put(&mut self, first: *mut u8, pages: Pages) {
        let page = PageId(((first as usize - self.base as usize) >> PAGE_SHIFT) as u32);
        let freed = self.source.free(PageRange::new(page, pages), self.density);
        debug_assert_eq!(freed, Ok(()), "the span was given so");
    }
}

/// Pages of a source of frames of 4 KiB.
#[derive(Debug)]
pub struct FramePages<'a, F> {
    source: &'a F,
    base: *mut u8,
}

/// log2 of the bytes of a frame.
const FRAME_SHIFT: u32 = 12;
/// log2 of the frames of a page.
const FRAME_ORDER: u32 = PAGE_SHIFT - FRAME_SHIFT;

impl<'a, F: FrameSource> FramePages<'a, F> {
    /// Pages of `source`.
    ///
    /// # Safety
    /// `base` is the address of the source's frame 0, and a multiple of the largest alignment that is asked for; the frames that it
    /// gives are readable and writable there, 4 KiB each.
    pub unsafe fn new(source: &'a F, base: *mut u8) -> Self {
        Self { source, base }
    }
}

// SAFETY: by the contract of `new`, frames are memory; a block of 2^k frames is aligned to its size.
unsafe impl<F: FrameSource> PageSupplier for FramePages<'_, F> {
    fn get(&mut self, pages: Pages, align: Pages) -> Option<*mut u8> {
        let (frames, block) = (frames(pages), pages.0.max(align.0).next_power_of_two());
        let first = self.source.get(block.trailing_zeros() + FRAME_ORDER, Density::Dense).ok()?;
        // A source gives powers of two. What is too much goes back, in blocks of powers of two, the smallest first.
        let (mut at, end) = (first + frames, first + self::frames(Pages(block)));
        while at < end {
            let part = 1 << (at - first).trailing_zeros();
            let put = self.source.put(at, part);
            debug_assert!(put.is_ok(), "it was given just now");
            at += part;
        }
        Some(self.base.wrapping_add(first << FRAME_SHIFT))
    }

    unsafe fn put(&mut self, first: *mut u8, pages: Pages) {
        let first = (first as usize - self.base as usize) >> FRAME_SHIFT;
        let put = self.source.put(first, frames(pages));
        debug_assert!(put.is_ok(), "they were given so");
    }
}

fn frames(pages: Pages) -> usize {
    (pages.0 as usize) << FRAME_ORDER
}

/// Pages of a fixed buffer: static memory, a part of a larger mapping, a mapped range of persistent memory.
///
/// Which of them are in use is told by bits of the caller's, one for each page, so that a page is not touched before it is given.
#[derive(Debug)]
pub struct BufferPages<'a> {
    first: *mut u8,
    pages: usize,
    /// A bit for each page that is out.
    map: &'a mut [u64],
    used: u32,
    /// No page before this one is free.
    least: usize,
}

// SAFETY: the buffer is its owner's alone, by the contract of `new`.
unsafe impl Send for BufferPages<'_> {}

impl<'a> BufferPages<'a> {
    /// The whole pages of `bytes` bytes from `buffer` on, as far as `map` has bits for them, which are cleared.
    ///
    /// # Safety
    /// The buffer is readable and writable, and the supplier's alone as long as it or one of its pages lives.
    pub unsafe fn new(buffer: *mut u8, bytes: usize, map: &'a mut [u64]) -> Self {
        let skip = (buffer as usize).wrapping_neg() % PAGE_SIZE;
        let pages = (bytes.saturating_sub(skip) / PAGE_SIZE).min(map.len() * 64);
        map.fill(0);
        Self { first: buffer.wrapping_add(skip), pages, map, used: 0, least: 0 }
    }

    /// Pages that the buffer has.
    pub fn pages(&self) -> Pages {
        Pages(self.pages as u32)
    }

    /// Pages that are out.
    pub fn used(&self) -> Pages {
        Pages(self.used)
    }

    fn is_used(&self, page: usize) -> bool {
        (self.map[page / 64] >> (page % 64)) & 1 == 1
    }

    fn set(&mut self, from: usize, pages: usize, used: bool) {
        for page in from..from + pages {
            debug_assert_ne!(self.is_used(page), used, "page {page}");
            self.map[page / 64] ^= 1 << (page % 64);
        }
    }
}

// SAFETY: pages whose bits are clear are nobody's, and lie in the buffer.
unsafe impl PageSupplier for BufferPages<'_> {
    fn get(&mut self, pages: Pages, align: Pages) -> Option<*mut u8> {
        let (want, align) = (pages.0 as usize, align.0 as usize);
        let before = (self.first as usize) >> PAGE_SHIFT;
        let mut at = self.least;
        loop {
            // The next place whose address, not whose number in the buffer, is aligned.
            at += (before + at).wrapping_neg() % align;
            if at + want > self.pages {
                return None;
            }
            match (at..at + want).rev().find(|page| self.is_used(*page)) {
                Some(used) => at = used + 1,
                None => break,
            }
        }
        self.set(at, want, true);
        self.used += pages.0;
        while self.least < self.pages && self.is_used(self.least) {
            self.least += 1;
        }
        Some(self.first.wrapping_add(at * PAGE_SIZE))
    }

    unsafe fn put(&mut self, first: *mut u8, pages: Pages) {
        let page = (first as usize - self.first as usize) >> PAGE_SHIFT;
        self.set(page, pages.0 as usize, false);
        self.used -= pages.0;
        self.least = self.least.min(page);
    }
}

#[cfg(test)]
mod tests;
