//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every seed is good, all machines agree.

use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Panics when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "Rng::below(0): there is no number below 0");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Panics when empty.
    pub fn in_range(&mut self, range: Range<u64>) -> u64 {
        assert!(range.start < range.end, "Rng::in_range({range:?}): the range is empty");
        range.start + self.below(range.end - range.start)
    }

    /// Log-uniform, as programs request them.
    pub fn size(&mut self, max: u64) -> u64 {
        let order = self.below(u64::from(u64::BITS - max.leading_zeros()).max(1)) as u32;
        let low = 1u64 << order;
        self.in_range(low..low.saturating_mul(2)).min(max)
    }

    /// `n` ≥ 1.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Panics when empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests;
