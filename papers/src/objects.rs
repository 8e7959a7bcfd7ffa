//! Bonwick94 §5's allocators of kernel memory, without locks. `None`: no pages left; nothing has
//! changed.
//!
//! **Unsafe.** A caller owns the memory that it frees.

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

const LEAST: u32 = 4;
const MOST: u32 = PAGE_SHIFT + 1;
const SIZES: usize = (MOST - LEAST + 1) as usize;

/// The smallest of [`SIZES`] with room.
#[inline]
fn size_for(bytes: usize) -> usize {
    (bytes.max(1 << LEAST).next_power_of_two().trailing_zeros() - LEAST) as usize
}

#[inline]
fn bytes_of(size: usize) -> usize {
    1 << (size as u32 + LEAST)
}

/// As `kmem_alloc` and `kmem_free`.
pub trait Store {
    /// 1 or more, aligned to 8 at least.
    fn get(&mut self, bytes: usize) -> Option<*mut u8>;

    /// # Safety
    /// `at` came from [`Store::get`] for this size, and is given up.
    unsafe fn put(&mut self, at: *mut u8, bytes: usize);

    /// Of the arena, and tables.
    fn consumed(&self) -> usize;

    fn check(&self) -> Result<(), String>;
}

#[cfg(test)]
mod tests;
