//! Raw memory with a known stamp, read before the free: overlapping blocks change the sum.
//!
//! **Unsafe.** `std::alloc` directly: a boxed slice would be written twice, and a large block must
//! be written only where the workload says.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const STAMP: usize = size_of::<u64>();

pub struct Block {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: a block owns its memory.
unsafe impl Send for Block {}

impl Block {
    /// At least 1 byte. A short block holds the stamp's low bytes.
    pub fn new(len: usize, stamp: u64) -> Self {
        let mut block = Self::bare(len);
        block.put(0, stamp);
        block.put(block.len.saturating_sub(STAMP), stamp);
        block
    }

    fn bare(len: usize) -> Self {
        let len = len.max(1);
        let layout = Self::layout(len);
        // SAFETY: at least one byte.
        let at = unsafe { alloc(layout) };
        Self { at: NonNull::new(at).unwrap_or_else(|| handle_alloc_error(layout)), len }
    }

    /// Every size goes to malloc, not `aligned_alloc`.
    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 1).expect("a block is smaller than half of the address space")
    }

    pub fn ends(&self) -> u64 {
        self.get(0).wrapping_add(self.get(self.len.saturating_sub(STAMP)).rotate_left(1))
    }

    /// `at` leaves room for it.
    #[inline]
    fn put(&mut self, at: usize, stamp: u64) {
        if self.len < STAMP {
            let stamp = stamp.to_le();
            // SAFETY: `len` bytes of this block; `stamp` has more.
            return unsafe { self.at.copy_from_nonoverlapping(NonNull::from(&stamp).cast(), self.len) };
        }
        debug_assert!(at + STAMP <= self.len);
        // SAFETY: each caller keeps `at + STAMP` within `len`.
        unsafe { self.at.add(at).cast().write_unaligned(stamp.to_le()) }
    }

    #[inline]
    fn get(&self, at: usize) -> u64 {
        if self.len < STAMP {
            let mut stamp = 0u64;
            // SAFETY: all of `len` bytes were written; `stamp` has more.
            unsafe { self.at.copy_to_nonoverlapping(NonNull::from(&mut stamp).cast(), self.len) }
            return u64::from_le(stamp);
        }
        debug_assert!(at + STAMP <= self.len);
        // SAFETY: each caller keeps `at + STAMP` within `len`, and reads written bytes: the ends,
        // others only in a `Filled`.
        u64::from_le(unsafe { self.at.add(at).cast().read_unaligned() })
    }
}

pub struct Filled(Block);

impl Filled {
    /// The last stamp may start within a word.
    pub fn new(len: usize, stamp: u64) -> Self {
        let mut block = Block::new(len, stamp);
        for at in (0..block.len / STAMP * STAMP).step_by(STAMP) {
            block.put(at, stamp);
        }
        block.put(len.saturating_sub(STAMP), stamp);
        Self(block)
    }

    pub fn len(&self) -> usize {
        self.0.len
    }

    pub fn ends(&self) -> u64 {
        self.0.ends()
    }

    pub fn sum(&self) -> u64 {
        self.sum_each(STAMP)
    }

    pub fn sum_pages(&self) -> u64 {
        self.sum_each(4096)
    }

    fn sum_each(&self, step: usize) -> u64 {
        let words = (0..self.0.len / STAMP * STAMP).step_by(step);
        words.fold(self.0.ends(), |sum, at| sum.wrapping_add(self.0.get(at)))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `bare` allocated it with this layout.
        unsafe { dealloc(self.at.as_ptr(), Self::layout(self.len)) }
    }
}

#[cfg(test)]
mod tests;
