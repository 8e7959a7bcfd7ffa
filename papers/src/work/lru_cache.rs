//! A cache whose values drift from small to large and back, on which Memcached's slabs calcify
//! (Rumble et al., FAST 2014, §2).

use super::Load;
use super::block::Filled;
use craton_lab::rng::{Rng, mix};
use lru::LruCache;
use std::hash::{BuildHasherDefault, DefaultHasher};

pub fn run(load: &Load) -> u64 {
    let mut rng = Rng::new(load.seed, 0);
    let mut cache = Cache::new(BUDGET);
    for (stage, (lookups, smallest, largest)) in STAGES.into_iter().enumerate() {
        for _ in 0..load.of(lookups) {
            // Old values live on beside new ones.
            let key = u64::from(rng.skewed(KEYS)) + stage as u64 * u64::from(KEYS / 64);
            let size = (smallest + rng.skewed(largest - smallest)) as usize;
            cache.look_up(key, size);
        }
    }
    cache.sum
}

const BUDGET: usize = 48 << 20;
const KEYS: u32 = 1 << 21;
/// Look-ups, smallest and largest new value.
const STAGES: [(u64, u32, u32); 7] = [
    (900_000, 32, 256),
    (300_000, 200, 800),
    (90_000, 600, 3000),
    (30_000, 2000, 16_000),
    (90_000, 600, 3000),
    (300_000, 100, 600),
    (900_000, 32, 256),
];

struct Cache {
    // A fixed hash: equal growth in each run.
    values: LruCache<u64, Filled, BuildHasherDefault<DefaultHasher>>,
    budget: usize,
    bytes: usize,
    sum: u64,
}

impl Cache {
    fn new(budget: usize) -> Self {
        Self { values: LruCache::unbounded_with_hasher(BuildHasherDefault::default()), budget, bytes: 0, sum: 0 }
    }

    fn look_up(&mut self, key: u64, size: usize) {
        if let Some(ends) = self.values.get(&key).map(Filled::ends) {
            return self.add(ends);
        }
        while self.bytes + size > self.budget
            && let Some((_, old)) = self.values.pop_lru()
        {
            self.bytes -= old.len();
            self.add(old.sum());
        }
        let value = Filled::new(size, mix(key ^ size as u64));
        self.bytes += size;
        self.add(value.ends());
        self.values.put(key, value);
    }

    fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(value);
    }
}

#[cfg(test)]
mod tests;
