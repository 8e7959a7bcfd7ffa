//! Allocators of kernel memory, for comparison with slabs.
//!
//! **What.** Those that Bonwick94 §5 compares with: [`PowerOfTwo`] of 4.4BSD, [`LazyBuddy`] of
//! SVr4, [`FastFits`] of SunOS 4.1.3. Their pages come from an [`Arena`]; total fragmentation is 1
//! − requested / [`Store::consumed`]. None has locks.
//!
//! **Units.** Bytes; pages of 8 KiB.
//!
//! **Failure.** `None` when the arena has no pages left; nothing has changed then.
//!
//! **Unsafe.** A caller promises that it owns the memory that it frees.

mod arena;
mod caches;
mod fast_fits;
mod lazy_buddy;
mod power_of_two;

pub use arena::Arena;
pub use caches::{Caches, Policy, Unasked};
pub use fast_fits::FastFits;
pub use lazy_buddy::LazyBuddy;
pub use power_of_two::PowerOfTwo;

use craton_base::PAGE_SHIFT;

/// log2 of the smallest and the largest size with a free list.
const LEAST: u32 = 4;
const MOST: u32 = PAGE_SHIFT + 1;
const SIZES: usize = (MOST - LEAST + 1) as usize;

/// The place among [`SIZES`] of the smallest size with room for `bytes`.
#[inline]
fn size_for(bytes: usize) -> usize {
    (bytes.max(1 << LEAST).next_power_of_two().trailing_zeros() - LEAST) as usize
}

#[inline]
fn bytes_of(size: usize) -> usize {
    1 << (size as u32 + LEAST)
}

/// An allocator of any size, as a kernel's `kmem_alloc` and `kmem_free`: the caller of free passes
/// the size.
pub trait Store {
    /// Allocates `bytes` (1 or more), aligned to 8 at least. `None`: the arena has no pages left.
    fn get(&mut self, bytes: usize) -> Option<*mut u8>;

    /// Frees them.
    ///
    /// # Safety
    /// `at` came from [`Store::get`] for this size, and is no longer used.
    unsafe fn put(&mut self, at: *mut u8, bytes: usize);

    /// Bytes that the allocator has from its arena, and those of its tables for them.
    fn consumed(&self) -> usize;

    /// Walks what must hold; says what does not.
    fn check(&self) -> Result<(), String>;
}

#[cfg(test)]
mod tests;
