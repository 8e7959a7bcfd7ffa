//! A cache whose values grow and shrink over time.
//!
//! **What.** A look-up that finds its key checks the value and makes it the most recently used; one that does not puts a
//! value in, and throws the least recently used out until all fit a budget of bytes. Popular keys stay for long, the
//! others go soon. The sizes of new values drift: from small to large and back, so that what one size left free has to
//! serve the next.
//!
//! **From.** The drift of value sizes in memory caches, on which Memcached's slabs calcify and LRU lists starve:
//! Rumble et al., "Log-structured memory for DRAM-based storage" (FAST 2014) §2, whose changes of distribution come
//! with deletions at random; here the deletions are those of a cache.
//!
//! **Units.** Look-ups; sizes in bytes.
//!
//! **State.** The list of the entries by use is a ring through their slots: slot 0 is its anchor, the one after it the
//! most recently used. The map is looked up only, never walked: its order is another in each run.

use super::Workload;
use super::block::Filled;
use craton_lab::rng::{Rng, mix};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// The workload, in the list.
pub const WORKLOAD: Workload = Workload {
    name: "lru-cache",
    about: "a cache of 48 MiB, whose values' sizes drift between 32 B and 16 KiB",
    from: "value sizes that change, after RAMCloud (FAST 2014)",
    threads: 1,
    run: |load| {
        let mut rng = Rng::new(load.seed, 0);
        let mut cache = Cache::new(BUDGET);
        for (stage, (lookups, smallest, largest)) in STAGES.into_iter().enumerate() {
            for _ in 0..load.of(lookups) {
                // The keys of a stage overlap with those of the one before: old values live on beside the new.
                let key = u64::from(rng.skewed(KEYS)) + stage as u64 * u64::from(KEYS / 64);
                let size = (smallest + rng.skewed(largest - smallest)) as usize;
                cache.look_up(key, size);
            }
        }
        cache.sum
    },
    known: [0xea52_38a6_d041_6252, 0xc745_11d9_2889_b326],
};

/// Bytes of all values at most.
const BUDGET: usize = 48 << 20;
/// Keys that can be asked for in a stage.
const KEYS: u32 = 1 << 21;
/// The drift: look-ups of a stage at full load, and the smallest and the largest of its new values.
const STAGES: [(u64, u32, u32); 7] = [
    (900_000, 32, 256),
    (300_000, 200, 800),
    (90_000, 600, 3000),
    (30_000, 2000, 16_000),
    (90_000, 600, 3000),
    (300_000, 100, 600),
    (900_000, 32, 256),
];

struct Entry {
    key: u64,
    value: Option<Filled>,
    before: u32,
    after: u32,
}

struct Cache {
    // A fixed hash function: the table's growth is the same in each run.
    slots: HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>,
    entries: Vec<Entry>,
    unused: Vec<u32>,
    budget: usize,
    bytes: usize,
    /// Over what was found and what was thrown out.
    sum: u64,
}

impl Cache {
    fn new(budget: usize) -> Self {
        let anchor = Entry { key: 0, value: None, before: 0, after: 0 };
        Self { slots: HashMap::default(), entries: vec![anchor], unused: Vec::new(), budget, bytes: 0, sum: 0 }
    }

    /// Reads the key's value; makes one of that size if it has none yet.
    fn look_up(&mut self, key: u64, size: usize) {
        let slot = match self.slots.get(&key) {
            Some(slot) => {
                let slot = *slot;
                self.unlink(slot);
                slot
            }
            None => self.insert(key, size),
        };
        self.link_first(slot);
        self.add(self.entries[slot as usize].value.as_ref().map_or(0, Filled::ends));
    }

    /// A slot for a new value, which is not in the ring yet.
    fn insert(&mut self, key: u64, size: usize) -> u32 {
        while self.bytes + size > self.budget && self.entries[0].before != 0 {
            self.evict(self.entries[0].before);
        }
        self.bytes += size;
        let entry = Entry { key, value: Some(Filled::new(size, mix(key ^ size as u64))), before: 0, after: 0 };
        let slot = match self.unused.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.slots.insert(key, slot);
        slot
    }

    fn evict(&mut self, slot: u32) {
        self.unlink(slot);
        let entry = &mut self.entries[slot as usize];
        self.slots.remove(&entry.key);
        if let Some(value) = entry.value.take() {
            self.bytes -= value.len();
            self.add(value.sum());
        }
        self.unused.push(slot);
    }

    fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(value);
    }

    fn link_first(&mut self, slot: u32) {
        let first = self.entries[0].after;
        (self.entries[slot as usize].before, self.entries[slot as usize].after) = (0, first);
        self.entries[first as usize].before = slot;
        self.entries[0].after = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { before, after, .. } = self.entries[slot as usize];
        self.entries[before as usize].after = after;
        self.entries[after as usize].before = before;
    }
}

#[cfg(test)]
mod tests;
