//! The use of each unit of 64 KiB, in DRAM, stored under its arena's lock and loaded by every free.

use crate::layout::{UNIT, UNIT_SHIFT};
use craton_base::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    pub class: usize,
    pub arena: usize,
    /// Index in the arena.
    pub slab: usize,
    /// May have objects of the former class.
    pub mixed: bool,
    /// About to change its class: frees wait.
    pub frozen: bool,
}

const SLAB: u64 = 1;
const MIXED: u64 = 2;
const FROZEN: u64 = 4;
const CHUNK: u64 = 1024;
const STEP: u64 = 16;
/// A bit for each place of an object.
const CLAIM_WORDS: usize = (UNIT / STEP / 64) as usize;

type Claims = Box<[AtomicU64; CLAIM_WORDS]>;

struct Chunk {
    tags: Box<[AtomicU64]>,
    claims: Box<[OnceLock<Claims>]>,
}

impl Chunk {
    fn new() -> Self {
        let claims = (0..CHUNK).map(|_| OnceLock::new()).collect();
        Self { tags: (0..CHUNK).map(|_| AtomicU64::new(0)).collect(), claims }
    }
}

pub struct Units {
    chunks: Box<[OnceLock<Chunk>]>,
}

impl Units {
    /// 40 bytes for each 64 MiB at first.
    pub fn new(bytes: u64) -> Self {
        let chunks = (bytes >> UNIT_SHIFT) / CHUNK + 1;
        Self { chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// The slab with the byte at `at`.
    #[inline]
    pub fn get(&self, at: u64) -> Option<Tag> {
        let unit = at >> UNIT_SHIFT;
        let word = self.chunks.get((unit / CHUNK) as usize)?.get()?.tags[(unit % CHUNK) as usize]
            // ORDERING: pairs with the release in `set`, behind the slab's header.
            .load(Ordering::Acquire);
        (word & SLAB != 0).then_some(Tag {
            class: (word >> 8 & 0xff) as usize,
            arena: (word >> 16 & 0xff) as usize,
            slab: (word >> 32) as usize,
            mixed: word & MIXED != 0,
            frozen: word & FROZEN != 0,
        })
    }

    pub fn set(&self, at: u64, tag: Option<Tag>) {
        let unit = at >> UNIT_SHIFT;
        let chunk = self.chunks[(unit / CHUNK) as usize].get_or_init(Chunk::new);
        let word = tag.map_or(0, |tag| {
            let mixed = if tag.mixed { MIXED } else { 0 };
            let frozen = if tag.frozen { FROZEN } else { 0 };
            SLAB | mixed | frozen | (tag.class as u64) << 8 | (tag.arena as u64) << 16 | (tag.slab as u64) << 32
        });
        // ORDERING: pairs with the acquire in `get`.
        chunk.tags[(unit % CHUNK) as usize].store(word, Ordering::Release);
    }

    fn claim_word(&self, at: u64) -> (&AtomicU64, u64) {
        let (unit, place) = (at >> UNIT_SHIFT, at % UNIT / STEP);
        let chunk = self.chunks[(unit / CHUNK) as usize].get_or_init(Chunk::new);
        let claims = &chunk.claims[(unit % CHUNK) as usize];
        let claims = claims.get_or_init(|| Box::new([const { AtomicU64::new(0) }; CLAIM_WORDS]));
        (&claims[(place / 64) as usize], 1 << (place % 64))
    }

    /// `false`: another free has the object.
    #[inline]
    pub fn claim(&self, at: u64) -> bool {
        let (word, bit) = self.claim_word(at);
        // ORDERING: pairs with the release in `unclaim`.
        word.fetch_or(bit, Ordering::Acquire) & bit == 0
    }

    /// When slot and bit are changed, or the free is refused.
    #[inline]
    pub fn unclaim(&self, at: u64) {
        let (word, bit) = self.claim_word(at);
        // ORDERING: pairs with the acquire in `claim`.
        word.fetch_and(!bit, Ordering::Release);
    }
}
