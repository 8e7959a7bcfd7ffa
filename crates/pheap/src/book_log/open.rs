//! Reads the log of a heap that is opened (NVAlloc §4.4).
//!
//! **Failure.** Each checked word, the list and what entries name are verified; the first that does
//! not fit is reported with its offset, and nothing is followed.

use super::chunk::{self, CHUNK_BYTES, Found, SLOTS};
use super::entry::{self, Entry, Of};
use super::{BookLog, LogConfig, MAGIC, Slot};
use craton_base::Medium;
use std::ops::Range;

/// An extent that the log says is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Live {
    pub(crate) page: u64,
    pub(crate) pages: u32,
    pub(crate) is_slab: bool,
    pub(crate) slot: Slot,
    /// Offset of the entry.
    pub(crate) at: u64,
}

/// What is damaged, and its offset.
pub(crate) type Damage = (&'static str, u64);

impl BookLog {
    /// Reads the log; its chunks must lie in the bytes `data`. Redo lines were redone before.
    pub(crate) fn open<M: Medium>(
        medium: &M,
        config: LogConfig,
        data: Range<u64>,
    ) -> Result<(Self, Vec<Live>), Damage> {
        let mut log = Self::empty(config);
        let mut at = log.read_head(medium)?;
        let mut found: Vec<(u32, Found)> = Vec::new();
        let mut from = config.header;
        while at != 0 {
            if at < data.start || at % CHUNK_BYTES != 0 || at.saturating_add(CHUNK_BYTES) > data.end {
                return Err(("place of a log chunk", from));
            }
            let chunk = chunk::read(medium, config.salt, at)?;
            if log.by_id.contains_key(&chunk.id) {
                return Err(("list of log chunks, which is a loop", from));
            }
            let (index, before) = (log.add_vchunk(at, chunk.id), log.tail);
            log.insert_behind(before, index);
            log.chunks[index as usize].is_sealed = chunk.is_sealed;
            if !chunk.is_sealed {
                log.unsealed.push_back(chunk.id);
            }
            log.room.add_used(at);
            log.next_id = log.next_id.max(chunk.id + 1);
            (from, at) = (at, chunk.next);
            found.push((index, chunk));
        }
        log.mark_valid(&found);
        log.cancel_named(&found)?;
        log.find_end(&found);
        let live = log.list_live(&found);
        log.live = live.len() as u64;
        log.dying = log.chunks.iter().filter(|vchunk| vchunk.is_dead()).map(|vchunk| vchunk.id).collect();
        Ok((log, live))
    }

    /// The place of the first chunk, or 0.
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

    fn mark_valid(&mut self, found: &[(u32, Found)]) {
        for (index, chunk) in found {
            for (slot, entry) in chunk.entries.iter().enumerate() {
                if matches!(entry, Entry::Extent { .. }) {
                    self.chunks[*index as usize].valid |= 1 << slot;
                }
            }
        }
    }

    /// Applies tombstones. One that names a chunk that has left the list is not needed.
    fn cancel_named(&mut self, found: &[(u32, Found)]) -> Result<(), Damage> {
        for (index, chunk) in found {
            for (slot, entry) in chunk.entries.iter().enumerate() {
                let Entry::Tombstone { id, slot: named } = *entry else { continue };
                self.next_id = self.next_id.max(id + 1);
                let Some(&target) = self.by_id.get(&id) else { continue };
                let there = &mut self.chunks[target as usize];
                if there.valid >> named & 1 == 0 {
                    let at = chunk::slot_at(self.chunks[*index as usize].at, slot as u8);
                    return Err(("tombstone, whose entry is not in use", at));
                }
                there.valid &= !(1 << named);
                if target != *index {
                    match there.tombstones.last_mut() {
                        Some((holder, count)) if *holder == *index => *count += 1,
                        _ => there.tombstones.push((*index, 1)),
                    }
                    self.chunks[*index as usize].needed += 1;
                }
            }
        }
        Ok(())
    }

    /// Entries are appended behind the last one of the tail. Slots that stayed empty before it are
    /// for extents.
    fn find_end(&mut self, found: &[(u32, Found)]) {
        let Some((tail, last)) = found.last() else { return };
        let is_empty = |slot: &u8| last.entries[usize::from(*slot)] == Entry::Empty;
        self.used = match last.is_sealed {
            true => SLOTS,
            false => self.order.iter().rposition(|slot| !is_empty(slot)).map_or(0, |nth| nth + 1),
        };
        let empty: Vec<u8> =
            self.order[..self.used].iter().copied().filter(|s| !last.is_sealed && is_empty(s)).collect();
        empty.into_iter().for_each(|slot| self.keep_spare(Slot { chunk: *tail, slot }));
        // Other chunks may have empty slots too, and are then never full.
        self.unsealed.retain(|id| self.by_id.get(id).is_some_and(|index| index == tail));
    }

    fn list_live(&self, found: &[(u32, Found)]) -> Vec<Live> {
        let mut live = Vec::new();
        for (index, chunk) in found {
            let vchunk = &self.chunks[*index as usize];
            for (slot, entry) in chunk.entries.iter().enumerate() {
                let Entry::Extent { page, pages, is_slab } = *entry else { continue };
                if vchunk.valid >> slot & 1 == 1 {
                    let (slot, at) = (Slot { chunk: *index, slot: slot as u8 }, chunk::slot_at(vchunk.at, slot as u8));
                    live.push(Live { page, pages, is_slab, slot, at });
                }
            }
        }
        live
    }
}
