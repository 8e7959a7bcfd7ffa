//! The use of each unit of 64 KiB, in DRAM, stored under its arena's lock and loaded by every free.

use crate::class::SIZES;
use crate::layout::{UNIT, UNIT_SHIFT};
use craton_base::atomic::{AtomicU8, AtomicU64, Ordering};
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
    /// May have objects of less than [`COARSE`] bytes.
    pub fine: bool,
}

impl Tag {
    pub fn is_fine(class: usize) -> bool {
        u64::from(SIZES[class]) < COARSE
    }
}

const SLAB: u64 = 1;
const MIXED: u64 = 2;
const FROZEN: u64 = 4;
const FINE: u64 = 8;
const CHUNK: u64 = 1024;
/// Between the beginnings of two objects at least: of small ones, and of others.
const STEP: u64 = 16;
const COARSE: u64 = 64;

/// A byte for each place of an object. Not a bit: a plain store can end a claim.
type Claims = OnceLock<Box<[AtomicU8]>>;

pub struct Claim<'a>(&'a AtomicU8);

impl Claim<'_> {
    #[inline]
    pub fn end(self) {
        // ORDERING: pairs with the acquire in `Units::claim`.
        self.0.store(0, Ordering::Release);
    }
}

struct Chunk {
    tags: Box<[AtomicU64]>,
    claims: Box<[Claims]>,
    fine_claims: Box<[Claims]>,
}

impl Chunk {
    fn new() -> Self {
        let claims = || (0..CHUNK).map(|_| OnceLock::new()).collect();
        Self { tags: (0..CHUNK).map(|_| AtomicU64::new(0)).collect(), claims: claims(), fine_claims: claims() }
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
            fine: word & FINE != 0,
        })
    }

    pub fn set(&self, at: u64, tag: Option<Tag>) {
        let unit = at >> UNIT_SHIFT;
        let chunk = self.chunks[(unit / CHUNK) as usize].get_or_init(Chunk::new);
        let word = tag.map_or(0, |tag| {
            let mixed = if tag.mixed { MIXED } else { 0 };
            let frozen = if tag.frozen { FROZEN } else { 0 };
            let fine = if tag.fine { FINE } else { 0 };
            SLAB | mixed | frozen | fine | (tag.class as u64) << 8 | (tag.arena as u64) << 16 | (tag.slab as u64) << 32
        });
        // ORDERING: pairs with the acquire in `get`.
        chunk.tags[(unit % CHUNK) as usize].store(word, Ordering::Release);
    }

    fn claim_byte(&self, at: u64) -> &AtomicU8 {
        let unit = at >> UNIT_SHIFT;
        let chunk = self.chunks[(unit / CHUNK) as usize].get_or_init(Chunk::new);
        let unit = (unit % CHUNK) as usize;
        // The bit does not change while an object of the slab is in use.
        let is_fine = chunk.tags[unit].load(Ordering::Relaxed) & FINE != 0;
        let (claims, step) = if is_fine { (&chunk.fine_claims[unit], STEP) } else { (&chunk.claims[unit], COARSE) };
        let claims = claims.get_or_init(|| (0..UNIT / step).map(|_| AtomicU8::new(0)).collect());
        &claims[(at % UNIT / step) as usize]
    }

    /// `None`: another free has the object.
    #[inline]
    pub fn claim(&self, at: u64) -> Option<Claim<'_>> {
        let byte = self.claim_byte(at);
        // ORDERING: pairs with the release in `Claim::end`.
        (byte.swap(1, Ordering::Acquire) == 0).then_some(Claim(byte))
    }

    /// When slot and bit are changed. The object is not free yet.
    #[inline]
    pub fn unclaim(&self, at: u64) {
        Claim(self.claim_byte(at)).end();
    }
}
