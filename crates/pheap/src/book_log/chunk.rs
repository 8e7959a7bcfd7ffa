//! Chunks of the log: 1 KiB, 16 lines (NVAlloc §5.3 and figure 8).
//! ```text
//! word 0   id           word 2   seal: check of all entries, 0 while entries may follow
//! word 1   next, active word 3   0
//! words 4..128          slots 0..124
//! ```
//! Unlike the paper's, each header word has a checksum, so that one store changes a link.

use super::entry::{self, Entry, mix};
use craton_base::atomic::Ordering;
use craton_base::{LINE_BYTES, LINE_WORDS, Line, Medium};

pub(super) const CHUNK_BYTES: u64 = 1024;
const WORDS: usize = CHUNK_BYTES as usize / 8;
const HEADER_WORDS: usize = 4;
pub(super) const SLOTS: usize = WORDS - HEADER_WORDS;
const LINES: usize = WORDS / LINE_WORDS;
pub(super) const MOST_STRIPES: u32 = LINES as u32;

const LINK: u64 = 8;
const SEAL: u64 = 16;

/// Consecutive entries lie on different lines of `stripes` (NVAlloc §5.1).
pub(super) fn slot_order(stripes: u32) -> [u8; SLOTS] {
    let stripes = stripes.clamp(1, MOST_STRIPES) as usize;
    let mut order = [0; SLOTS];
    let mut used = 0;
    for first in (0..LINES).step_by(stripes) {
        for word in 0..LINE_WORDS {
            for line in first..(first + stripes).min(LINES) {
                let at = line * LINE_WORDS + word;
                if at >= HEADER_WORDS {
                    order[used] = (at - HEADER_WORDS) as u8;
                    used += 1;
                }
            }
        }
    }
    order
}

pub(super) fn slot_at(chunk: u64, slot: u8) -> u64 {
    chunk + 8 * (HEADER_WORDS as u64 + u64::from(slot))
}

pub(super) struct Image([u64; WORDS]);

impl Image {
    pub(super) fn new() -> Self {
        Self([0; WORDS])
    }

    pub(super) fn set(&mut self, slot: u8, value: u64) {
        self.0[HEADER_WORDS + usize::from(slot)] = value;
    }

    pub(super) fn seal(&mut self, salt: u64, id: u64) {
        self.0[2] = seal_of(salt, id, &self.0[HEADER_WORDS..]);
    }

    /// Durable with the next fence.
    pub(super) fn write<M: Medium>(mut self, medium: &M, salt: u64, (at, id): (u64, u64), next: u64) {
        self.0[0] = entry::encode_id(salt, at, id);
        self.0[1] = entry::encode_link(salt, id, next);
        for (line, words) in self.0.chunks_exact(LINE_WORDS).enumerate() {
            let mut copy: Line = [0; LINE_WORDS];
            copy.copy_from_slice(words);
            medium.store_line(at + line as u64 * LINE_BYTES, &copy);
        }
    }
}

fn seal_of(salt: u64, id: u64, entries: &[u64]) -> u64 {
    // 0 means: no seal.
    entries.iter().enumerate().fold(id, |sum, (slot, word)| mix(salt, sum, word ^ slot as u64)) | 1
}

/// ORDERING: pairs with the release of `Medium::store` in the thread that wrote it.
pub(super) fn load<M: Medium>(medium: &M, at: u64) -> u64 {
    medium.word(at).load(Ordering::Acquire)
}

pub(super) fn store_link<M: Medium>(medium: &M, salt: u64, (at, id): (u64, u64), next: u64) {
    medium.store(at + LINK, entry::encode_link(salt, id, next));
    medium.flush(at + LINK);
}

/// `false`: some entries are not stored yet.
pub(super) fn try_seal<M: Medium>(medium: &M, salt: u64, (at, id): (u64, u64)) -> bool {
    let mut words = [0; SLOTS];
    for (slot, word) in words.iter_mut().enumerate() {
        *word = load(medium, slot_at(at, slot as u8));
        if *word == 0 {
            return false;
        }
    }
    medium.store(at + SEAL, seal_of(salt, id, &words));
    medium.flush(at + SEAL);
    true
}

pub(super) struct Found {
    pub(super) id: u64,
    pub(super) next: u64,
    pub(super) is_sealed: bool,
}

/// Error: what is damaged, and its offset.
pub(super) fn read<M: Medium>(
    medium: &M,
    salt: u64,
    at: u64,
    mut each: impl FnMut(u8, Entry),
) -> Result<Found, (&'static str, u64)> {
    let id = entry::decode_id(salt, at, load(medium, at)).ok_or(("id of a log chunk", at))?;
    let next = entry::decode_link(salt, id, load(medium, at + LINK)).ok_or(("link of a log chunk", at + LINK))?;
    let mut words = [0; SLOTS];
    for (slot, word) in words.iter_mut().enumerate() {
        let place = slot_at(at, slot as u8);
        *word = load(medium, place);
        each(slot as u8, Entry::decode(salt, *word).ok_or(("log entry", place))?);
    }
    let seal = load(medium, at + SEAL);
    if seal != 0 && seal != seal_of(salt, id, &words) {
        return Err(("seal of a log chunk", at + SEAL));
    }
    Ok(Found { id, next, is_sealed: seal != 0 })
}
