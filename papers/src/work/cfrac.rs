//! Factoring by the continued-fraction method: results of `num-bigint` are blocks of 8 to 32 B that
//! live for a moment.
//!
//! **From.** cfrac (Dave Barrett), of Zorn and Grunwald (1992).

mod factor;

use super::Load;
use craton_lab::rng::Rng;
use factor::{End, Search};
use num_bigint::BigUint;
use num_traits::One;

pub fn run(load: &Load) -> u64 {
    let mut allowed = load.of(STEPS);
    let (mut sum, mut number) = (0u64, 0);
    while allowed > 0 {
        sum = sum.wrapping_mul(31).wrapping_add(split(&mut Rng::new(load.seed, number), &mut allowed));
        number += 1;
    }
    sum
}

const STEPS: u64 = 2_000_000;
const PRIME_BITS: u32 = 58;

fn split(rng: &mut Rng, allowed: &mut u64) -> u64 {
    let (p, q) = (BigUint::from(prime(rng)), BigUint::from(prime(rng)));
    let n = &p * &q;
    let mut search = Search::new(&n);
    let is_split = match search.run(allowed) {
        End::Factor(factor) => factor == p || factor == q,
        End::Period | End::Steps => false,
    };
    search.digest().wrapping_add(u64::from(is_split))
}

fn prime(rng: &mut Rng) -> u64 {
    loop {
        let candidate = rng.next() >> (64 - PRIME_BITS) | 1 << (PRIME_BITS - 1) | 1;
        if is_prime(candidate) {
            return candidate;
        }
    }
}

/// By Miller and Rabin, above 40; exact for 64 bits.
fn is_prime(n: u64) -> bool {
    let (zeros, most, n) = ((n - 1).trailing_zeros(), BigUint::from(n - 1), BigUint::from(n));
    [2u32, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37].into_iter().all(|base| {
        let first = BigUint::from(base).modpow(&(&most >> zeros), &n);
        let mut squares = std::iter::successors(Some(first.clone()), |x| Some(x * x % &n)).take(zeros as usize);
        first.is_one() || squares.any(|x| x == most)
    })
}

#[cfg(test)]
mod tests;
