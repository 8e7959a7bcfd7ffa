//! Random order for free objects of a hardened heap.
//!
//! Each order of up to 64 objects is about as likely: rounding favours some by up to a quarter.
//!
//! **Unsafe.** Reads and writes the links of free objects.

use crate::mark::{Key, fold};
use core::mem::MaybeUninit;
use craton_base::atomic::{AtomicU64, Ordering::Relaxed};
use craton_slab::{Chain, end};

/// An attacker cannot predict it.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    count: u64,
    secret: u64,
}

impl Random {
    pub fn new(key: &Key, n: u64) -> Self {
        let factor = key.factor as u64;
        Self { count: fold(factor ^ n << 32, 0x2545_f491_4f6c_dd1d), secret: fold(factor, 0x9e6c_63d0_876a_9a47) | 1 }
    }

    pub fn draw(&mut self) -> u64 {
        self.count = self.count.wrapping_add(0x9e37_79b9_7f4a_7c15);
        fold(self.count, self.count ^ self.secret)
    }
}

/// Threads that draw at once may draw the same.
pub struct SharedRandom(AtomicU64);

impl SharedRandom {
    #[allow(clippy::declare_interior_mutable_const)] // Each use makes a new one.
    pub const NEW: Self = Self(AtomicU64::new(0));

    /// As last kept.
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

/// Longer lists are shuffled piece by piece.
const MOST: usize = 64;
/// Bits of a place, and objects that one draw serves.
const BITS: u32 = 8;
const DRAWN: u32 = u64::BITS / BITS;

/// One of up to 2^18 orders of 2^k places.
#[derive(Clone, Copy)]
struct Order {
    step: u32,
    at: u32,
    change: u32,
    factor: u32,
}

impl Order {
    #[inline(always)]
    fn new(drawn: u64) -> Self {
        let part = |n: u32| (drawn >> (16 * n)) as u16 as u32;
        Self { step: part(0) | 1, at: part(1), change: part(2), factor: part(3) | 1 }
    }

    /// `n` is a power of two.
    #[inline(always)]
    fn next(&mut self, n: u32) -> usize {
        self.at = self.at.wrapping_add(self.step);
        let place = self.at & (n - 1);
        // Without the shift an even place would always come to lie between odd ones.
        ((place ^ place >> 1 ^ self.change).wrapping_mul(self.factor) & (n - 1)) as usize
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// By this number of objects.
    Short(u32),
    NotFree(*mut u8),
}

/// `pass` reports whether each of `n` ≥ 1 is an object, before its link is read.
///
/// # Safety
/// The caller owns the objects, which `pass` tells from others.
pub unsafe fn shuffle(
    random: &mut Random,
    first: *mut u8,
    n: u32,
    mut pass: impl FnMut(*mut u8) -> bool,
) -> Result<Chain, Wrong> {
    let (mut chain, mut at, mut left) = (Chain::EMPTY, first, n);
    while left > 0 {
        let piece = left.min(MOST as u32);
        let mut bits = 0;
        // SAFETY: by the contract. The inside-out Fisher-Yates shuffle.
        let (dealt, rest) = unsafe {
            place(at, piece, &mut pass, |places, i, object| {
                if i % DRAWN == 0 {
                    bits = random.draw();
                }
                let other = (((bits as usize % (1 << BITS)) * (i as usize + 1)) >> BITS) % MOST;
                bits >>= BITS;
                places[i as usize % MOST] = places[other];
                places[other].write(object);
            })
        }
        .map_err(|wrong| if let Wrong::Short(n) = wrong { Wrong::Short(n + left - piece) } else { wrong })?;
        let (last, (head, n)) = (dealt.last(), dealt.into_raw());
        // SAFETY: the piece's objects are linked to the last.
        unsafe { chain.append(head, last, n) };
        (at, left) = (rest, left - piece);
    }
    Ok(chain)
}

/// [`shuffle`] in a quarter of the instructions for 2^k ≤ 64 objects.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn deal(
    random: &mut Random,
    first: *mut u8,
    n: u32,
    mut pass: impl FnMut(*mut u8) -> bool,
) -> Result<Chain, Wrong> {
    if !n.is_power_of_two() || n > MOST as u32 {
        // SAFETY: by the contract.
        return unsafe { shuffle(random, first, n, pass) };
    }
    let mut order = Order::new(random.draw());
    // SAFETY: by the contract; an order has each place once.
    let dealt =
        unsafe { place(first, n, &mut pass, |places, _, object| _ = places[order.next(n) % MOST].write(object)) };
    dealt.map(|(chain, _)| chain)
}

type Places = [MaybeUninit<*mut u8>; MOST];

/// `put` writes all places below `n` ≤ 64 once, in the new order. Also returns the rest.
///
/// # Safety
/// As [`shuffle`], and by what `put` does.
#[inline(always)]
unsafe fn place(
    first: *mut u8,
    n: u32,
    pass: &mut impl FnMut(*mut u8) -> bool,
    mut put: impl FnMut(&mut Places, u32, *mut u8),
) -> Result<(Chain, *mut u8), Wrong> {
    let mut places: Places = [const { MaybeUninit::uninit() }; MOST];
    let mut at = first;
    for i in 0..n {
        if !pass(at) {
            return Err(if at == end() { Wrong::Short(n - i) } else { Wrong::NotFree(at) });
        }
        put(&mut places, i, at);
        // SAFETY: a free object of the caller's.
        at = unsafe { at.cast::<*mut u8>().read() };
    }
    // SAFETY: the first `n` places hold the caller's objects.
    unsafe {
        let whole = core::slice::from_raw_parts(places.as_ptr().cast::<*mut u8>(), n as usize);
        let mut next = end();
        for object in whole.iter().rev() {
            object.cast::<*mut u8>().write(next);
            next = *object;
        }
        Ok((Chain::from_raw(next, whole[whole.len() - 1], n), at))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
