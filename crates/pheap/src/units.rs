//! What each unit of 64 KiB is, in DRAM.
//!
//! **What.** A word for each unit: whether it is a slab, of which class, in which arena. Chunks of
//! words appear when their units are first used.
//! **Threads.** A word is stored under its arena's lock and loaded by every free.

use crate::layout::UNIT_SHIFT;
use craton_base::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// A unit as a slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    pub class: usize,
    pub arena: usize,
    /// The slab's index in its arena.
    pub slab: usize,
    /// Some objects may be of the class before.
    pub mixed: bool,
    /// The slab is about to change its class: frees wait.
    pub frozen: bool,
}

const SLAB: u64 = 1;
const MIXED: u64 = 2;
const FROZEN: u64 = 4;
const CHUNK: u64 = 1024;

pub struct Units {
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl Units {
    /// For a heap of at most `bytes`: 24 bytes for each 64 MiB at first.
    pub fn new(bytes: u64) -> Self {
        let chunks = (bytes >> UNIT_SHIFT) / CHUNK + 1;
        Self { chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// The slab that holds the byte at `at`, if one does.
    #[inline]
    pub fn get(&self, at: u64) -> Option<Tag> {
        let unit = at >> UNIT_SHIFT;
        let word = self.chunks.get((unit / CHUNK) as usize)?.get()?[(unit % CHUNK) as usize]
            // ORDERING: pairs with the release in `set`: the slab's header is there.
            .load(Ordering::Acquire);
        (word & SLAB != 0).then_some(Tag {
            class: (word >> 8 & 0xff) as usize,
            arena: (word >> 16 & 0xff) as usize,
            slab: (word >> 32) as usize,
            mixed: word & MIXED != 0,
            frozen: word & FROZEN != 0,
        })
    }

    /// Makes the unit of `at` a slab, or none.
    pub fn set(&self, at: u64, tag: Option<Tag>) {
        let unit = at >> UNIT_SHIFT;
        let chunk =
            self.chunks[(unit / CHUNK) as usize].get_or_init(|| (0..CHUNK).map(|_| AtomicU64::new(0)).collect());
        let word = tag.map_or(0, |tag| {
            let mixed = if tag.mixed { MIXED } else { 0 };
            let frozen = if tag.frozen { FROZEN } else { 0 };
            SLAB | mixed | frozen | (tag.class as u64) << 8 | (tag.arena as u64) << 16 | (tag.slab as u64) << 32
        });
        // ORDERING: pairs with the acquire in `get`.
        chunk[(unit % CHUNK) as usize].store(word, Ordering::Release);
    }
}
