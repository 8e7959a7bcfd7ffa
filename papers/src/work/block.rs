//! Raw memory with a known stamp in it.
//!
//! **What.** The stamp is read before the free: overlapping blocks change the sum.
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

// SAFETY: a block owns its memory, as a box does.
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

    /// Alignment 1, so that every size goes to malloc and none to `aligned_alloc`.
    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 1).expect("a block is smaller than half of the address space")
    }

    pub fn ends(&self) -> u64 {
        self.get(0).wrapping_add(self.get(self.len.saturating_sub(STAMP)).rotate_left(1))
    }

    /// As much as a shorter block holds. `at` leaves room for it.
    #[inline]
    fn put(&mut self, at: usize, stamp: u64) {
        if self.len < STAMP {
            let stamp = stamp.to_le();
            // SAFETY: this block owns `len` bytes; `stamp` is a local of more.
            return unsafe { self.at.copy_from_nonoverlapping(NonNull::from(&stamp).cast(), self.len) };
        }
        debug_assert!(at + STAMP <= self.len);
        // SAFETY: each caller in this file keeps `at + STAMP` within `len`, which this block owns.
        unsafe { self.at.add(at).cast().write_unaligned(stamp.to_le()) }
    }

    /// `at` leaves room for it.
    #[inline]
    fn get(&self, at: usize) -> u64 {
        if self.len < STAMP {
            let mut stamp = 0u64;
            // SAFETY: all of `len` bytes were written, since that is less than a stamp; `stamp` has
            // more.
            unsafe { self.at.copy_to_nonoverlapping(NonNull::from(&mut stamp).cast(), self.len) }
            return u64::from_le(stamp);
        }
        debug_assert!(at + STAMP <= self.len);
        // SAFETY: each caller in this file keeps `at + STAMP` within `len` and reads written bytes:
        // the ends always, others only in a `Filled`.
        u64::from_le(unsafe { self.at.add(at).cast().read_unaligned() })
    }
}

pub struct Filled(Block);

impl Filled {
    /// At least 1 byte, all written; the last stamp may start within a word.
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

    /// The first word of each 4 KiB, with the ends again.
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
        // SAFETY: `bare` allocated this memory with the same layout; this block owns it.
        unsafe { dealloc(self.at.as_ptr(), Self::layout(self.len)) }
    }
}

#[cfg(test)]
mod tests;
