//! Random numbers from a seed, by SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
//! number generators", 2014): sequences of neighbouring seeds are unrelated.

#[derive(Clone, Debug, Default)]
pub struct Rng(u64);

/// 2^64 by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Rng {
    pub fn new(seed: u64, number: u64) -> Self {
        Self(mix(seed.wrapping_add(STEP)).wrapping_add(mix(number)))
    }

    #[expect(clippy::should_implement_trait, reason = "the sequence has no end, so an Option would say nothing")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// `bound` is not 0. The bias is below `bound` / 2^32.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    pub fn skewed(&mut self, bound: u32) -> u32 {
        let least = u64::from(self.below(bound).min(self.below(bound)));
        (least * least / u64::from(bound)) as u32
    }

    /// 16 B to 64 KiB, log-normal around 1 KiB: the ones in twelve random bits are the power of
    /// two.
    pub fn size(&mut self) -> usize {
        let bits = self.next();
        let top = 16usize << (bits & 0xfff).count_ones();
        (top - (bits >> 32) as usize % (top / 2)).max(16)
    }
}
