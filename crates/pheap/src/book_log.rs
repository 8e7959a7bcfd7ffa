//! The bookkeeping log: which extents are in use (NVAlloc §5.3, figures 7 and 8).
//!
//! The log chooses an entry's slot and word; the caller stores it after committing the redo line
//! that names both. Slots therefore fill in any order, and one may stay empty.
//!
//! **From.** Where we differ: tombstones do not pin chunks, and one checked store changes a link or
//! head.
//!
//! **State.** Header line: `magic | head 0 | head 1 | alt`.
//!
//! **Invariants.** *B1* A tombstone lies in the chunk of its target or behind it. *B2* A chunk
//! leaves the list only without entries in use or needed tombstones. *B3* Its leaving is durable
//! before the tombstones that named it leave, and before its memory is used again. *B4* A chunk is
//! durable before a link to it, and the link before an entry is given out in it. *B5* The new list
//! is durable before the alt bit changes.

mod chunk;
mod entry;
mod gc;
mod open;
mod room;
#[cfg(test)]
mod tests;

use chunk::{Image, SLOTS};
use craton_base::{Line, Medium};
pub(crate) use entry::{Entry, PAGE_BITS, PAGES_BITS, mix};
use entry::{Of, encode_place};
pub(crate) use open::Live;
use room::Room;
pub(crate) use room::UNIT_BYTES;
use std::collections::{BTreeMap, VecDeque};

const MAGIC: u64 = u64::from_le_bytes(*b"CRATONBL");
const NONE: u32 = u32::MAX;
/// For frees alone: a heap without memory must still be able to free.
const RESERVE: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// Offset of the header line, a multiple of 64.
    pub header: u64,
    /// Makes another heap's chunks invalid.
    pub salt: u64,
    /// Lines over which consecutive entries are spread, 1 to 16.
    pub stripes: u32,
    /// Bytes of chunks above which the slow collection runs (the paper's usage threshold).
    pub usage_bytes: u64,
    /// Percentage of slots in use up to which it runs.
    pub usage_percent: u32,
}

impl LogConfig {
    /// Six stripes; collected above 64 KiB if three quarters are garbage.
    pub const fn new(header: u64, salt: u64) -> Self {
        Self { header, salt, stripes: 6, usage_bytes: 65_536, usage_percent: 25 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    chunk: u32,
    slot: u8,
}

impl Slot {
    pub(crate) const NOWHERE: Self = Self { chunk: NONE, slot: 0 };
}

/// Numbers count since the log was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogStats {
    pub chunks: u64,
    /// Entries in use.
    pub live: u64,
    pub free_chunks: u64,
    /// They wait for their epoch.
    pub retired_chunks: u64,
    /// Chunks removed by the fast collection.
    pub fast_freed: u64,
    pub slow_runs: u64,
    /// Entries copied by the slow collection.
    pub copied: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkView {
    pub at: u64,
    pub id: u64,
    /// Entries in use.
    pub live: u32,
    /// Needed tombstones.
    pub needed: u32,
    pub is_sealed: bool,
}

#[derive(Default)]
struct Vchunk {
    at: u64,
    id: u64,
    valid: u128,
    /// Tombstones in it whose targets' chunks are in the list.
    needed: u32,
    freeing: u32,
    prev: u32,
    next: u32,
    /// The last epoch that cancelled an entry or wrote a tombstone in it.
    epoch: u64,
    is_sealed: bool,
    /// Chunks with tombstones that name this one, and how many.
    tombstones: Vec<(u32, u32)>,
}

impl Vchunk {
    fn is_dead(&self) -> bool {
        self.valid == 0 && self.needed == 0
    }

    #[inline]
    fn add_tombstone(&mut self, holder: u32) {
        match self.tombstones.last_mut() {
            Some((chunk, count)) if *chunk == holder => *count += 1,
            _ => self.tombstones.push((holder, 1)),
        }
    }
}

pub(crate) struct BookLog {
    config: LogConfig,
    order: [u8; SLOTS],
    chunks: Vec<Vchunk>,
    vacant: Vec<u32>,
    by_id: BTreeMap<u64, u32>,
    head: u32,
    tail: u32,
    /// Slots of the tail that were given out, in `order`.
    used: usize,
    next_id: u64,
    alt: bool,
    /// Slots of cancelled entries, by chunk id. For extents only: B1.
    spare: Vec<(u64, Slot)>,
    /// Chunks that may be dead.
    dying: Vec<u64>,
    unsealed: VecDeque<u64>,
    room: Room,
    live: u64,
    stats: LogStats,
}

impl BookLog {
    fn empty(config: LogConfig) -> Self {
        Self {
            config,
            order: chunk::slot_order(config.stripes),
            chunks: Vec::new(),
            vacant: Vec::new(),
            by_id: BTreeMap::new(),
            head: NONE,
            tail: NONE,
            used: SLOTS,
            next_id: 1,
            alt: false,
            spare: Vec::new(),
            dying: Vec::new(),
            unsealed: VecDeque::new(),
            room: Room::default(),
            live: 0,
            stats: LogStats::default(),
        }
    }

    /// Ignores the contents.
    pub(crate) fn create<M: Medium>(medium: &M, config: LogConfig) -> Self {
        let salt = config.salt;
        let mut line: Line = [0; 8];
        line[0] = MAGIC;
        line[1] = encode_place(salt, Of::Head(false), 0);
        line[2] = encode_place(salt, Of::Head(true), 0);
        line[3] = encode_place(salt, Of::Alt, 0);
        medium.store_line(config.header, &line);
        medium.fence();
        Self::empty(config)
    }

    #[inline]
    pub(crate) fn has_slot(&self) -> bool {
        self.used < SLOTS
    }

    /// Chunks missing until an entry has a slot.
    pub(crate) fn missing_chunks(&self, is_free: bool) -> usize {
        let least = if is_free { 1 } else { 1 + RESERVE };
        least.saturating_sub(self.room.free())
    }

    pub(crate) fn free_chunks(&self) -> usize {
        self.room.free()
    }

    pub(crate) fn add_unit(&mut self, at: u64) {
        self.room.add_unit(at);
    }

    pub(crate) fn take_unit(&mut self) -> Option<u64> {
        self.room.take_unit(2 * RESERVE)
    }

    pub(crate) fn units(&self) -> impl Iterator<Item = u64> + '_ {
        self.room.units()
    }

    pub(crate) fn settle(&mut self, settled: u64) {
        self.room.settle(settled);
    }

    /// Chooses an extent's slot: the caller stores the word at the offset.
    #[inline]
    pub(crate) fn append(&mut self, entry: Entry) -> (Slot, u64, u64) {
        let slot = match self.take_spare() {
            Some(slot) => slot,
            None => self.take_slot(),
        };
        self.chunks[slot.chunk as usize].valid |= 1 << slot.slot;
        self.live += 1;
        (slot, self.at(slot), entry.encode(self.config.salt))
    }

    #[inline]
    pub(crate) fn append_tombstone(&mut self, target: Slot) -> (Slot, u64, u64) {
        let slot = self.take_slot();
        let there = &mut self.chunks[target.chunk as usize];
        there.freeing += 1;
        let name = Entry::Tombstone { id: there.id, slot: target.slot };
        if slot.chunk != target.chunk {
            there.add_tombstone(slot.chunk);
            self.chunks[slot.chunk as usize].needed += 1;
        }
        (slot, self.at(slot), name.encode(self.config.salt))
    }

    /// Reverts `append`.
    pub(crate) fn cancel(&mut self, slot: Slot) {
        self.chunks[slot.chunk as usize].valid &= !(1 << slot.slot);
        self.live -= 1;
        self.keep_spare(slot);
        self.note_dying(slot.chunk);
    }

    /// Reverts `append_tombstone`.
    pub(crate) fn cancel_tombstone(&mut self, target: Slot, tombstone: Slot) {
        let there = &mut self.chunks[target.chunk as usize];
        there.freeing -= 1;
        if target.chunk != tombstone.chunk {
            if let Some((_, count)) = there.tombstones.iter_mut().rev().find(|(chunk, _)| *chunk == tombstone.chunk) {
                *count -= 1;
            }
            self.chunks[tombstone.chunk as usize].needed -= 1;
        }
        self.keep_spare(tombstone);
        self.note_dying(tombstone.chunk);
    }

    /// An entry's tombstone is stored, by a line of `epoch`.
    #[inline]
    pub(crate) fn end(&mut self, target: Slot, tombstone: Slot, epoch: u64) {
        let there = &mut self.chunks[target.chunk as usize];
        there.valid &= !(1 << target.slot);
        there.freeing -= 1;
        there.epoch = there.epoch.max(epoch);
        let holder = &mut self.chunks[tombstone.chunk as usize];
        holder.epoch = holder.epoch.max(epoch);
        self.live -= 1;
        self.note_dying(target.chunk);
    }

    #[inline]
    fn at(&self, slot: Slot) -> u64 {
        chunk::slot_at(self.chunks[slot.chunk as usize].at, slot.slot)
    }

    #[inline]
    fn take_slot(&mut self) -> Slot {
        let slot = Slot { chunk: self.tail, slot: self.order[self.used] };
        self.used += 1;
        slot
    }

    #[inline]
    fn take_spare(&mut self) -> Option<Slot> {
        while let Some((id, slot)) = self.spare.pop() {
            if self.chunks[slot.chunk as usize].id == id {
                return Some(slot);
            }
        }
        None
    }

    fn keep_spare(&mut self, slot: Slot) {
        self.spare.push((self.chunks[slot.chunk as usize].id, slot));
    }

    #[inline]
    fn note_dying(&mut self, chunk: u32) {
        let vchunk = &self.chunks[chunk as usize];
        if vchunk.is_dead() {
            self.dying.push(vchunk.id);
        }
    }

    /// `false`: no chunk is free.
    pub(crate) fn append_chunk<M: Medium>(&mut self, medium: &M) -> bool {
        self.seal_full(medium);
        let Some(at) = self.room.take() else { return false };
        let id = self.new_id();
        Image::new().write(medium, self.config.salt, (at, id), 0);
        // B4.
        medium.fence();
        let before = self.tail;
        self.store_next(medium, before, at);
        medium.fence();
        let new = self.add_vchunk(at, id);
        self.insert_behind(before, new);
        self.used = 0;
        self.unsealed.push_back(id);
        true
    }

    /// Chunks with operations under way wait for the next call.
    fn seal_full<M: Medium>(&mut self, medium: &M) {
        for _ in 0..self.unsealed.len() {
            let Some(id) = self.unsealed.pop_front() else { break };
            let Some(&index) = self.by_id.get(&id) else { continue };
            let vchunk = &mut self.chunks[index as usize];
            if index == self.tail && self.used < SLOTS {
                self.unsealed.push_back(id);
            } else if chunk::try_seal(medium, self.config.salt, (vchunk.at, id)) {
                vchunk.is_sealed = true;
            } else {
                self.unsealed.push_back(id);
            }
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn store_next<M: Medium>(&self, medium: &M, chunk: u32, next: u64) {
        let salt = self.config.salt;
        if chunk != NONE {
            let vchunk = &self.chunks[chunk as usize];
            chunk::store_link(medium, salt, (vchunk.at, vchunk.id), next);
        } else {
            self.store_head(medium, self.alt, next);
        }
    }

    fn store_head<M: Medium>(&self, medium: &M, which: bool, to: u64) {
        let at = self.config.header + 8 + 8 * u64::from(which);
        medium.store(at, encode_place(self.config.salt, Of::Head(which), to));
        medium.flush(at);
    }

    fn add_vchunk(&mut self, at: u64, id: u64) -> u32 {
        let index = match self.vacant.pop() {
            Some(index) => index,
            None => {
                self.chunks.push(Vchunk::default());
                (self.chunks.len() - 1) as u32
            }
        };
        let vchunk = &mut self.chunks[index as usize];
        let mut tombstones = std::mem::take(&mut vchunk.tombstones);
        tombstones.clear();
        *vchunk = Vchunk { at, id, prev: NONE, next: NONE, tombstones, ..Vchunk::default() };
        self.by_id.insert(id, index);
        index
    }

    fn insert_behind(&mut self, before: u32, new: u32) {
        let after = if before == NONE { self.head } else { self.chunks[before as usize].next };
        self.chunks[new as usize].prev = before;
        self.chunks[new as usize].next = after;
        *self.next_of(before) = new;
        *self.prev_of(after) = new;
    }

    fn next_of(&mut self, chunk: u32) -> &mut u32 {
        if chunk == NONE { &mut self.head } else { &mut self.chunks[chunk as usize].next }
    }

    fn prev_of(&mut self, chunk: u32) -> &mut u32 {
        if chunk == NONE { &mut self.tail } else { &mut self.chunks[chunk as usize].prev }
    }

    /// The memory waits for its epoch.
    fn retire(&mut self, chunk: u32, epoch: u64) {
        let vchunk = &mut self.chunks[chunk as usize];
        self.room.retire(vchunk.at, epoch);
        self.by_id.remove(&vchunk.id);
        vchunk.id = 0;
        self.vacant.push(chunk);
    }

    pub(crate) fn stats(&self) -> LogStats {
        LogStats {
            chunks: self.by_id.len() as u64,
            live: self.live,
            free_chunks: self.room.free() as u64,
            retired_chunks: self.room.retired() as u64,
            ..self.stats
        }
    }

    /// Oldest first.
    pub(crate) fn views(&self) -> impl Iterator<Item = ChunkView> + '_ {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let vchunk = self.chunks.get(at as usize)?;
            at = vchunk.next;
            let live = vchunk.valid.count_ones();
            Some(ChunkView { at: vchunk.at, id: vchunk.id, live, needed: vchunk.needed, is_sealed: vchunk.is_sealed })
        })
    }
}
