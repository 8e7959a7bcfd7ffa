//! Random order for free objects of a hardened heap.
//!
//! **What.** Up to 64 objects at a time change places with each other. Each order of them is about
//! as likely; the bits of a draw are rounded to places, which favours some by up to a quarter.
//!
//! **Cost.** 12 instructions an object; 512 bytes of stack.
//!
//! **Unsafe.** Reads and writes the links of free objects.

use crate::mark::{Key, fold};
use core::ptr::null_mut;
use craton_base::atomic::{AtomicU64, Ordering::Relaxed};
use craton_slab::{Chain, end};

/// A generator that an attacker cannot predict: a counter, mixed with a secret.
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

/// Objects that change places with each other; longer lists are shuffled piece by piece.
const MOST: usize = 64;
/// Bits for each object's place, and objects that one draw serves.
const BITS: u32 = 8;
const DRAWN: u32 = u64::BITS / BITS;

/// The fault of a damaged list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// The list ends early, by this number of objects.
    Short(u32),
    /// The list leads to an address that is no free object.
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
    let (mut chain_head, mut last, mut at, mut left) = (end(), null_mut::<u8>(), first, n);
    while left > 0 {
        let piece = left.min(MOST as u32);
        let mut places = [null_mut::<u8>(); MOST];
        let mut bits = 0;
        for i in 0..piece {
            if i % DRAWN == 0 {
                bits = random.draw();
            }
            if !pass(at) {
                return Err(if at == end() { Wrong::Short(left - i) } else { Wrong::NotFree(at) });
            }
            // The inside-out form of Fisher's and Yates' shuffle.
            let other = (((bits as usize % (1 << BITS)) * (i as usize + 1)) >> BITS) % MOST;
            bits >>= BITS;
            places[i as usize % MOST] = places[other];
            places[other] = at;
            // SAFETY: a free object of the caller's, which leads to the next one.
            at = unsafe { at.cast::<*mut u8>().read() };
        }
        let whole = &places[..piece as usize];
        let mut next = end();
        for object in whole.iter().rev() {
            // SAFETY: the caller's object.
            unsafe { object.cast::<*mut u8>().write(next) };
            next = *object;
        }
        if last.is_null() {
            chain_head = next;
        } else {
            // SAFETY: the last object of the piece before.
            unsafe { last.cast::<*mut u8>().write(next) };
        }
        last = whole[whole.len() - 1];
        left -= piece;
    }
    // SAFETY: the `n` objects hang from the head, and `last` leads to the end.
    Ok(unsafe { Chain::from_raw(chain_head, last, n) })
}

#[cfg(all(test, not(loom)))]
mod tests;
