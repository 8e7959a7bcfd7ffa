//! Opens the log (NVAlloc §4.4). Verifies each checked word, the list and what entries name, and
//! reports the first fault.

use super::chunk::{self, CHUNK_BYTES};
use super::entry::{self, Entry, Of};
use super::{BookLog, LogConfig, MAGIC, Slot};
use craton_base::Medium;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Live {
    pub(crate) page: u64,
    pub(crate) pages: u32,
    pub(crate) is_slab: bool,
    pub(crate) slot: Slot,
    pub(crate) at: u64,
}

struct Named {
    holder: Slot,
    id: u64,
    slot: u8,
}

/// The damaged part, and its offset.
pub(crate) type Damage = (&'static str, u64);

impl BookLog {
    /// Call after redo. The chunks lie in the bytes `data`.
    pub(crate) fn open<M: Medium>(
        medium: &M,
        config: LogConfig,
        data: Range<u64>,
    ) -> Result<(Self, Vec<Live>), Damage> {
        let mut log = Self::empty(config);
        let mut at = log.read_head(medium)?;
        let mut tombstones: Vec<Named> = Vec::new();
        let mut from = config.header;
        while at != 0 {
            if at < data.start || at % CHUNK_BYTES != 0 || at.saturating_add(CHUNK_BYTES) > data.end {
                return Err(("place of a log chunk", from));
            }
            let (index, before) = (log.add_vchunk(at, 0), log.tail);
            let mut valid = 0;
            let found = chunk::read(medium, config.salt, at, |slot, entry| match entry {
                Entry::Extent { .. } => valid |= 1 << slot,
                Entry::Tombstone { id, slot: named } => {
                    tombstones.push(Named { holder: Slot { chunk: index, slot }, id, slot: named });
                }
                Entry::Empty => {}
            })?;
            if log.by_id.insert(found.id, index).is_some() {
                return Err(("list of log chunks, which is a loop", from));
            }
            let vchunk = &mut log.chunks[index as usize];
            (vchunk.id, vchunk.valid, vchunk.is_sealed) = (found.id, valid, found.is_sealed);
            log.insert_behind(before, index);
            log.room.add_used(at);
            log.next_id = log.next_id.max(found.id + 1);
            (from, at) = (at, found.next);
        }
        log.by_id.remove(&0);
        log.cancel_named(&tombstones)?;
        log.find_end(medium);
        let live = log.list_live(medium);
        log.live = live.len() as u64;
        log.dying = log.chunks.iter().filter(|vchunk| vchunk.is_dead()).map(|vchunk| vchunk.id).collect();
        Ok((log, live))
    }

    /// Offset of the first chunk, or 0.
    fn read_head<M: Medium>(&mut self, medium: &M) -> Result<u64, Damage> {
        let (header, salt) = (self.config.header, self.config.salt);
        if chunk::load(medium, header) != MAGIC {
            return Err(("magic of the log", header));
        }
        let alt = entry::decode_place(salt, Of::Alt, chunk::load(medium, header + 24));
        self.alt = alt.ok_or(("alt bit of the log", header + 24))? != 0;
        let at = header + 8 + 8 * u64::from(self.alt);
        entry::decode_place(salt, Of::Head(self.alt), chunk::load(medium, at)).ok_or(("head of the log", at))
    }

    fn cancel_named(&mut self, tombstones: &[Named]) -> Result<(), Damage> {
        for &Named { holder, id, slot } in tombstones {
            self.next_id = self.next_id.max(id + 1);
            let Some(&target) = self.by_id.get(&id) else { continue };
            let there = &mut self.chunks[target as usize];
            if there.valid >> slot & 1 == 0 {
                return Err(("tombstone, whose entry is not in use", self.at(holder)));
            }
            there.valid &= !(1 << slot);
            if target != holder.chunk {
                there.add_tombstone(holder.chunk);
                self.chunks[holder.chunk as usize].needed += 1;
            }
        }
        Ok(())
    }

    /// Entries follow the last one of an unsealed tail; empty slots before it are for extents.
    /// Other chunks with empty slots are never sealed.
    fn find_end<M: Medium>(&mut self, medium: &M) {
        let Some(tail) = self.chunks.get(self.tail as usize).filter(|tail| !tail.is_sealed) else { return };
        let (at, id) = (tail.at, tail.id);
        let is_used = |slot: &u8| chunk::load(medium, chunk::slot_at(at, *slot)) != 0;
        self.used = self.order.iter().rposition(is_used).map_or(0, |nth| nth + 1);
        let empty: Vec<u8> = self.order[..self.used].iter().copied().filter(|slot| !is_used(slot)).collect();
        empty.into_iter().for_each(|slot| self.keep_spare(Slot { chunk: self.tail, slot }));
        self.unsealed.push_back(id);
    }

    fn list_live<M: Medium>(&self, medium: &M) -> Vec<Live> {
        let count: u32 = self.chunks.iter().map(|vchunk| vchunk.valid.count_ones()).sum();
        let mut live = Vec::with_capacity(count as usize);
        for (index, vchunk) in self.chunks.iter().enumerate() {
            let mut left = vchunk.valid;
            while left != 0 {
                let slot = left.trailing_zeros() as u8;
                left &= left - 1;
                let at = chunk::slot_at(vchunk.at, slot);
                let entry = Entry::decode(self.config.salt, chunk::load(medium, at));
                if let Some(Entry::Extent { page, pages, is_slab }) = entry {
                    live.push(Live { page, pages, is_slab, slot: Slot { chunk: index as u32, slot }, at });
                }
            }
        }
        live
    }
}
