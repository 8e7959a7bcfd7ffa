//! Random order for free objects of a hardened heap.
//!
//! **What.** Objects are dealt onto four piles by two random bits each, and the piles are stacked.
//! Objects that pass here again are mixed further. 4ⁿ orders are possible for n objects, fewer than
//! n!, but the next object is as hard to guess: no order keeps neighbours together.
//!
//! **Cost.** 8 instructions an object; no memory besides the objects' links.
//!
//! **Unsafe.** Reads and writes the links of free objects.

use crate::mark::{Key, fold};
use core::ptr::null_mut;
use craton_base::atomic::{AtomicU64, Ordering::Relaxed};
use craton_slab::{Chain, end};

/// A generator that nobody outside the process can guess: a counter, mixed with a secret.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    count: u64,
    secret: u64,
}

impl Random {
    /// The `n`-th generator of a heap.
    pub fn new(key: &Key, n: u64) -> Self {
        let factor = key.factor as u64;
        Self { count: fold(factor ^ n << 32, 0x2545_f491_4f6c_dd1d), secret: fold(factor, 0x9e6c_63d0_876a_9a47) | 1 }
    }

    pub fn draw(&mut self) -> u64 {
        self.count = self.count.wrapping_add(0x9e37_79b9_7f4a_7c15);
        fold(self.count, self.count ^ self.secret)
    }
}

/// A generator that threads share: two that draw at once may draw the same.
pub struct SharedRandom(AtomicU64);

impl SharedRandom {
    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new one.
    pub const NEW: Self = Self(AtomicU64::new(0));

    /// The `n`-th generator of a heap, as last kept.
    pub fn of(&self, key: &Key, n: u64) -> Random {
        let new = Random::new(key, !n);
        match self.0.load(Relaxed) {
            0 => new,
            count => Random { count, ..new },
        }
    }

    pub fn keep(&self, random: Random) {
        self.0.store(random.count, Relaxed);
    }
}

const PILES: usize = 4;
/// Objects that one draw deals.
const DEALT: u32 = 64 / PILES.ilog2();

/// What is wrong with a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// It ends so many objects too early.
    Short(u32),
    /// It leads to an address that is no free object.
    NotFree(*mut u8),
}

/// Shuffles the list of `n` ≥ 1 objects from `first` on. `pass` is called with each object before
/// its link is read, and says whether it is one.
///
/// # Safety
/// The caller owns the objects, which `pass` tells from others.
#[inline(always)]
pub unsafe fn deal(
    random: &mut Random,
    first: *mut u8,
    n: u32,
    mut pass: impl FnMut(*mut u8) -> bool,
) -> Result<Chain, Wrong> {
    let (mut heads, mut tails) = ([end(); PILES], [null_mut::<u8>(); PILES]);
    let (mut at, mut bits) = (first, 0);
    for i in 0..n {
        if i % DEALT == 0 {
            bits = random.draw();
        }
        if !pass(at) {
            return Err(if at == end() { Wrong::Short(n - i) } else { Wrong::NotFree(at) });
        }
        let pile = bits as usize % PILES;
        bits /= PILES as u64;
        // SAFETY: a free object of the caller's, which leads to the next one.
        unsafe {
            let link = at.cast::<*mut u8>();
            let next = link.read();
            link.write(heads[pile]);
            if tails[pile].is_null() {
                tails[pile] = at;
            }
            heads[pile] = at;
            at = next;
        }
    }
    let (mut head, mut last) = (end(), null_mut::<u8>());
    for pile in 0..PILES {
        if tails[pile].is_null() {
            continue;
        }
        if last.is_null() {
            last = tails[pile];
        } else {
            // SAFETY: the pile's last object is the caller's.
            unsafe { tails[pile].cast::<*mut u8>().write(head) };
        }
        head = heads[pile];
    }
    // SAFETY: the `n` objects hang from `head`, and `last` leads to the end.
    Ok(unsafe { Chain::from_raw(head, last, n) })
}

#[cfg(all(test, not(loom)))]
mod tests;
