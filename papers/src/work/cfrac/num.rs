//! Whole numbers of any length, each on the heap.
//!
//! **What.** A [`Num`] never changes: every operation allocates its result, a few limbs. That is the point of the
//! workload, and how the original's package of big numbers does it.
//!
//! **From.** Schoolbook multiplication and Knuth's algorithm D (The Art of Computer Programming, volume 2, 4.3.1).
//!
//! **State.** Limbs of 32 bits, the lowest first; the highest is not 0, and 0 has none.
//!
//! **Failure.** A difference below 0 and a division by 0 panic: the workload does neither.

use std::cmp::Ordering;

/// A whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Num(Vec<u32>);

/// Bits of a limb.
const BITS: u32 = u32::BITS;

impl Num {
    fn new(mut limbs: Vec<u32>) -> Self {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Self(limbs)
    }

    /// The number 0, which needs no memory.
    pub fn zero() -> Self {
        Self(Vec::new())
    }

    /// A number of one word.
    pub fn of(value: u64) -> Self {
        Self::new(vec![value as u32, (value >> BITS) as u32])
    }

    /// The number in one word, if it fits.
    pub fn word(&self) -> Option<u64> {
        match *self.0.as_slice() {
            [] => Some(0),
            [low] => Some(u64::from(low)),
            [low, high] => Some(u64::from(low) | u64::from(high) << BITS),
            _ => None,
        }
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of bits: of 0 none.
    pub fn bits(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * BITS - top.leading_zeros())
    }

    /// A number that depends on every limb, for the checksum.
    pub fn digest(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, limb| sum.wrapping_mul(0x100_0000_01b3).wrapping_add(u64::from(*limb)))
    }

    /// The sum.
    pub fn add(&self, other: &Self) -> Self {
        let (long, short) = if self.0.len() < other.0.len() { (other, self) } else { (self, other) };
        let mut limbs = Vec::with_capacity(long.0.len() + 1);
        let mut carry = 0;
        for (i, limb) in long.0.iter().enumerate() {
            carry += u64::from(*limb) + u64::from(short.0.get(i).copied().unwrap_or(0));
            limbs.push(carry as u32);
            carry >>= BITS;
        }
        limbs.push(carry as u32);
        Self::new(limbs)
    }

    /// The difference; `other` is not the larger.
    pub fn sub(&self, other: &Self) -> Self {
        let mut limbs = Vec::with_capacity(self.0.len());
        let mut borrow = 0;
        for (i, limb) in self.0.iter().enumerate() {
            let difference = i64::from(*limb) - i64::from(other.0.get(i).copied().unwrap_or(0)) - borrow;
            limbs.push(difference as u32);
            borrow = i64::from(difference < 0);
        }
        assert!(borrow == 0 && other.0.len() <= self.0.len(), "a difference is not below 0");
        Self::new(limbs)
    }

    /// The product.
    pub fn mul(&self, other: &Self) -> Self {
        // Not zeroed at first: that would be calloc, which some allocators serve in another way.
        let mut limbs = Vec::with_capacity(self.0.len() + other.0.len());
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (j, b) in other.0.iter().enumerate() {
                if i == 0 {
                    limbs.push(0);
                }
                carry += u64::from(limbs[i + j]) + u64::from(*a) * u64::from(*b);
                limbs[i + j] = carry as u32;
                carry >>= BITS;
            }
            limbs.push(carry as u32);
        }
        Self::new(limbs)
    }

    /// Quotient and remainder by a divisor of one limb, which is not 0.
    pub fn div_small(&self, by: u32) -> (Self, u32) {
        let mut limbs = self.0.clone();
        let mut rest = 0;
        for limb in limbs.iter_mut().rev() {
            rest = rest << BITS | u64::from(*limb);
            *limb = (rest / u64::from(by)) as u32;
            rest %= u64::from(by);
        }
        (Self::new(limbs), rest as u32)
    }

    /// Quotient and remainder; `by` is not 0.
    pub fn div(&self, by: &Self) -> (Self, Self) {
        match *by.0.as_slice() {
            [] => panic!("nothing is divided by 0"),
            [by] => {
                let (quotient, rest) = self.div_small(by);
                (quotient, Self::of(u64::from(rest)))
            }
            _ if *self < *by => (Self::zero(), self.clone()),
            _ => self.div_long(by),
        }
    }

    /// Algorithm D. The divisor has two limbs or more, and is not the larger.
    fn div_long(&self, by: &Self) -> (Self, Self) {
        let count = by.0.len();
        // D1: the divisor's highest bit is set, so that a guessed digit is at most two too large.
        let shift = by.0[count - 1].leading_zeros();
        let by = by.shifted(shift, count);
        let mut rest = self.shifted(shift, self.0.len() + 1);
        let (top, second) = (u64::from(by[count - 1]), u64::from(by[count - 2]));
        let mut quotient = vec![0; self.0.len() - count + 1];
        for at in (0..quotient.len()).rev() {
            // D3: the guess from the two highest limbs, corrected by the third.
            let upper = u64::from(rest[at + count]) << BITS | u64::from(rest[at + count - 1]);
            let (mut guess, mut left) = (upper / top, upper % top);
            while guess >> BITS != 0 || guess * second > (left << BITS | u64::from(rest[at + count - 2])) {
                guess -= 1;
                left += top;
                if left >> BITS != 0 {
                    break;
                }
            }
            if subtract(&mut rest[at..=at + count], &by, guess) {
                // D6: the guess was still one too large.
                guess -= 1;
                add_back(&mut rest[at..=at + count], &by);
            }
            quotient[at] = guess as u32;
        }
        let rest = Self::new(rest);
        (Self::new(quotient), Self::new(rest.lowered(shift)))
    }

    /// `count` limbs of the number times 2^`shift`, which is below 2^32.
    fn shifted(&self, shift: u32, count: usize) -> Vec<u32> {
        let mut limbs = Vec::with_capacity(count);
        let mut carry = 0;
        for i in 0..count {
            let wide = u64::from(self.0.get(i).copied().unwrap_or(0)) << shift;
            limbs.push(wide as u32 | carry);
            carry = (wide >> BITS) as u32;
        }
        limbs
    }

    /// The limbs of the number divided by 2^`shift`, which is below 2^32.
    fn lowered(&self, shift: u32) -> Vec<u32> {
        let wide = |i: usize| u64::from(self.0[i]) | u64::from(self.0.get(i + 1).copied().unwrap_or(0)) << BITS;
        (0..self.0.len()).map(|i| (wide(i) >> shift) as u32).collect()
    }

    /// The remainder.
    pub fn rem(&self, by: &Self) -> Self {
        self.div(by).1
    }

    /// The largest number whose square is not larger.
    pub fn sqrt(&self) -> Self {
        if self.is_zero() {
            return Self::zero();
        }
        // Newton's method from above: the first guess is a power of two that is too large, then each is smaller.
        let bits = self.bits() / 2 + 1;
        let mut guess = Self::new(std::iter::repeat_n(0, (bits / BITS) as usize).chain([1 << (bits % BITS)]).collect());
        loop {
            let next = guess.add(&self.div(&guess).0).div_small(2).0;
            if next >= guess {
                return guess;
            }
            guess = next;
        }
    }

    /// The greatest common divisor.
    pub fn gcd(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.clone(), other.clone());
        while !b.is_zero() {
            (a, b) = (b.clone(), a.rem(&b));
        }
        a
    }
}

/// Takes `times` the divisor away, modulo the power of two that `from` can hold. True when it was too much.
fn subtract(from: &mut [u32], by: &[u32], times: u64) -> bool {
    let mut carry = 0u64;
    for (limb, by) in from.iter_mut().zip(by.iter().chain(&[0])) {
        let product = u64::from(*by) * times + carry;
        carry = (product >> BITS) + u64::from(*limb < product as u32);
        *limb = limb.wrapping_sub(product as u32);
    }
    carry != 0
}

/// Adds the divisor again.
fn add_back(to: &mut [u32], by: &[u32]) {
    let mut carry = 0;
    for (limb, by) in to.iter_mut().zip(by.iter().chain(&[0])) {
        carry += u64::from(*limb) + u64::from(*by);
        *limb = carry as u32;
        carry >>= BITS;
    }
}

impl PartialOrd for Num {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Num {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use craton_lab::rng::Rng;

    fn random(rng: &mut Rng) -> Num {
        let limbs = (0..rng.below(7)).map(|_| match rng.below(4) {
            0 => 0,
            1 => u32::MAX,
            _ => rng.next() as u32,
        });
        Num::new(limbs.collect())
    }

    #[test]
    fn words_come_back() {
        for word in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            assert_eq!(Num::of(word).word(), Some(word));
            assert_eq!(Num::of(word).bits(), 64 - word.leading_zeros());
        }
        assert_eq!(Num::of(u64::MAX).add(&Num::of(1)).word(), None);
    }

    #[test]
    fn quotient_and_remainder_make_the_number_again() {
        let mut rng = Rng::new(1, 1);
        for _ in 0..20_000 {
            let (a, b) = (random(&mut rng), random(&mut rng));
            if b.is_zero() {
                continue;
            }
            let (quotient, rest) = a.div(&b);
            assert!(rest < b, "{a:?} / {b:?}");
            assert_eq!(quotient.mul(&b).add(&rest), a, "{a:?} / {b:?}");
        }
    }

    #[test]
    fn a_sum_less_one_part_is_the_other() {
        let mut rng = Rng::new(2, 1);
        for _ in 0..2000 {
            let (a, b) = (random(&mut rng), random(&mut rng));
            assert_eq!(a.add(&b).sub(&b), a);
            assert_eq!(a.mul(&b), b.mul(&a));
        }
    }

    #[test]
    fn the_root_is_the_largest_whose_square_fits() {
        let mut rng = Rng::new(3, 1);
        for _ in 0..2000 {
            let a = random(&mut rng);
            let root = a.sqrt();
            let next = root.add(&Num::of(1));
            assert!(root.mul(&root) <= a && next.mul(&next) > a, "{a:?}");
        }
    }

    #[test]
    fn the_common_divisor_is_found() {
        let common = Num::of(1_000_003).mul(&Num::of(998_244_353));
        let (a, b) = (common.mul(&Num::of(101)), common.mul(&Num::of(103)));
        assert_eq!(a.gcd(&b), common);
    }
}
