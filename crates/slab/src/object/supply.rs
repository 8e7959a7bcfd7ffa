//! Suppliers of a cache's pages (Bonwick94 §7.1).
//!
//! **Unsafe.** Suppliers promise memory; adapters turn places into addresses.

use craton_base::{Density, FrameSource, PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages, SpanSource};

/// # Safety
/// The memory of [`PageSupplier::get`] is readable, writable, and exclusive until
/// [`PageSupplier::put`].
pub unsafe trait PageSupplier {
    /// Returns contiguous pages, a multiple of the layout's page (8 KiB for magazines), at a
    /// multiple of `align`, a power of two. `None`: unchanged.
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8>;

    /// # Safety
    /// [`PageSupplier::get`] returned `first` for `bytes`, which are no longer used.
    unsafe fn put(&mut self, first: *mut u8, bytes: usize);
}

/// From a page heap.
#[derive(Debug)]
pub struct SpanPages<'a, S> {
    source: &'a mut S,
    base: *mut u8,
    density: Density,
}

impl<'a, S: SpanSource> SpanPages<'a, S> {
    /// # Safety
    /// `base` is the address of page 0, a multiple of the largest `align` requested; spans are
    /// readable and writable there.
    pub unsafe fn new(source: &'a mut S, base: *mut u8, density: Density) -> Self {
        Self { source, base, density }
    }
}

// SAFETY: by `new`'s contract; spans are aligned as their numbers.
unsafe impl<S: SpanSource> PageSupplier for SpanPages<'_, S> {
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8> {
        let (pages, align) = (whole(bytes)?, whole(align)?);
        let span = self.source.alloc(pages, align, self.density).ok()?;
        Some(self.base.wrapping_add(span.range.first.offset().0))
    }

    unsafe fn put(&mut self, first: *mut u8, bytes: usize) {
        let page = PageId(((first as usize - self.base as usize) >> PAGE_SHIFT) as u32);
        let freed = self.source.free(PageRange::new(page, Pages((bytes >> PAGE_SHIFT) as u32)), self.density);
        debug_assert_eq!(freed, Ok(()), "the span was given so");
    }
}

fn whole(bytes: usize) -> Option<Pages> {
    if bytes.is_multiple_of(PAGE_SIZE) { u32::try_from(bytes >> PAGE_SHIFT).ok().map(Pages) } else { None }
}

/// Pages of 4 KiB from frames.
#[derive(Debug)]
pub struct FramePages<'a, F> {
    source: &'a F,
    base: *mut u8,
}

const FRAME_SHIFT: u32 = 12;

impl<'a, F: FrameSource> FramePages<'a, F> {
    /// # Safety
    /// As [`SpanPages::new`], for frames of 4 KiB.
    pub unsafe fn new(source: &'a F, base: *mut u8) -> Self {
        Self { source, base }
    }
}

// SAFETY: by `new`'s contract; blocks of 2^k are aligned to their size.
unsafe impl<F: FrameSource> PageSupplier for FramePages<'_, F> {
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8> {
        if !bytes.is_multiple_of(1 << FRAME_SHIFT) {
            return None;
        }
        let (frames, block) = (bytes >> FRAME_SHIFT, bytes.max(align).next_power_of_two() >> FRAME_SHIFT);
        let first = self.source.get(block.trailing_zeros(), Density::Dense).ok()?;
        // The excess of a power of two is freed in such blocks, smallest first.
        let (mut at, end) = (first + frames, first + block);
        while at < end {
            let part = 1 << (at - first).trailing_zeros();
            let put = self.source.put(at, part);
            debug_assert!(put.is_ok(), "it was given just now");
            at += part;
        }
        Some(self.base.wrapping_add(first << FRAME_SHIFT))
    }

    unsafe fn put(&mut self, first: *mut u8, bytes: usize) {
        let first = (first as usize - self.base as usize) >> FRAME_SHIFT;
        let put = self.source.put(first, bytes >> FRAME_SHIFT);
        debug_assert!(put.is_ok(), "they were given so");
    }
}

/// A fixed buffer, whose used pages the caller's bits mark.
#[derive(Debug)]
pub struct BufferPages<'a> {
    first: *mut u8,
    shift: u32,
    pages: usize,
    map: &'a mut [u64],
    used: usize,
    least: usize,
}

// SAFETY: only its owner uses the buffer.
unsafe impl Send for BufferPages<'_> {}

impl<'a> BufferPages<'a> {
    /// Uses whole pages, as far as `map`, which is cleared, has bits.
    /// # Safety
    /// The buffer is readable, writable and the supplier's while it or a page of it lives.
    pub unsafe fn new(buffer: *mut u8, bytes: usize, map: &'a mut [u64]) -> Self {
        // SAFETY: by the contract.
        unsafe { Self::with_pages(buffer, bytes, PAGE_SIZE, map) }
    }

    /// # Panics
    /// If `page` is no power of two.
    /// # Safety
    /// As [`BufferPages::new`].
    pub unsafe fn with_pages(buffer: *mut u8, bytes: usize, page: usize, map: &'a mut [u64]) -> Self {
        assert!(page.is_power_of_two(), "pages of {page} bytes: no power of two");
        let skip = (buffer as usize).wrapping_neg() % page;
        let pages = (bytes.saturating_sub(skip) / page).min(map.len() * 64);
        map.fill(0);
        let shift = page.trailing_zeros();
        Self { first: buffer.wrapping_add(skip), shift, pages, map, used: 0, least: 0 }
    }

    pub fn pages(&self) -> usize {
        self.pages
    }

    pub fn used(&self) -> usize {
        self.used
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

// SAFETY: pages with clear bits are free.
unsafe impl PageSupplier for BufferPages<'_> {
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8> {
        let (want, align) = (bytes >> self.shift, (align >> self.shift).max(1));
        if want << self.shift != bytes {
            return None;
        }
        let before = (self.first as usize) >> self.shift;
        let mut at = self.least;
        loop {
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
        self.used += want;
        while self.least < self.pages && self.is_used(self.least) {
            self.least += 1;
        }
        Some(self.first.wrapping_add(at << self.shift))
    }

    unsafe fn put(&mut self, first: *mut u8, bytes: usize) {
        let (page, pages) = ((first as usize - self.first as usize) >> self.shift, bytes >> self.shift);
        self.set(page, pages, false);
        self.used -= pages;
        self.least = self.least.min(page);
    }
}

#[cfg(test)]
mod tests;
