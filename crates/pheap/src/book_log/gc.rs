//! Collection of the log (NVAlloc §5.3): fast, without reading entries; and slow, by copying.
//!
//! **From.** In the authors' code chunks with tombstones never empty. Here a tombstone is needed
//! only while its target's chunk is in the list.
//!
//! The slow collection moves entries to new chunks in front of the *rest*: the list from the first
//! chunk with an operation under way, whose slot may still be stored. The rest keeps its links, so
//! both lists are whole until the alt bit changes.

use super::chunk::{self, Image, SLOTS};
use super::entry::{Entry, Of, encode_place};
use super::{BookLog, NONE, Slot};
use craton_base::Medium;

impl BookLog {
    /// The fast collection: removes dead chunks.
    pub(crate) fn collect<M: Medium>(&mut self, medium: &M) {
        while !self.dying.is_empty() {
            let round = std::mem::take(&mut self.dying);
            let mut left = Vec::with_capacity(round.len());
            for id in round {
                let Some(&index) = self.by_id.get(&id) else { continue };
                let is_open = index == self.tail && self.used < SLOTS;
                // An open chunk is listed again when it is dead again.
                if is_open || !self.chunks[index as usize].is_dead() {
                    continue;
                }
                self.unlink(medium, index);
                left.push(index);
            }
            if left.is_empty() {
                return;
            }
            // B3.
            medium.fence();
            self.stats.fast_freed += left.len() as u64;
            for index in left {
                let epoch = self.chunks[index as usize].epoch;
                self.release_tombstones(index);
                self.retire(index, epoch);
            }
        }
    }

    fn unlink<M: Medium>(&mut self, medium: &M, chunk: u32) {
        let vchunk = &self.chunks[chunk as usize];
        let (prev, next) = (vchunk.prev, vchunk.next);
        let to = if next == NONE { 0 } else { self.chunks[next as usize].at };
        self.store_next(medium, prev, to);
        *self.next_of(prev) = next;
        *self.prev_of(next) = prev;
        if next == NONE {
            // The chunk before the tail is full.
            self.used = SLOTS;
        }
        // The round may name a chunk twice.
        let id = self.chunks[chunk as usize].id;
        self.by_id.remove(&id);
    }

    fn release_tombstones(&mut self, chunk: u32) {
        let mut tombstones = std::mem::take(&mut self.chunks[chunk as usize].tombstones);
        for (holder, count) in tombstones.drain(..) {
            let there = &mut self.chunks[holder as usize];
            there.needed -= count;
            // A holder that is leaving too has no id.
            if there.id != 0 {
                self.note_dying(holder);
            }
        }
        self.chunks[chunk as usize].tombstones = tombstones;
    }

    pub(crate) fn is_slow_due(&self) -> bool {
        let chunks = self.by_id.len() as u64;
        let slots = chunks * SLOTS as u64;
        chunks * chunk::CHUNK_BYTES > self.config.usage_bytes
            && self.live * 100 <= slots * u64::from(self.config.usage_percent)
    }

    pub(crate) fn slow_chunks(&self) -> usize {
        (self.live as usize).div_ceil(SLOTS)
    }

    /// The slow collection. `moved` gets each extent's first page and new slot. `false`: too much
    /// is under way or too few chunks are free. `epoch` is called after the home words are read,
    /// and returns at least the epoch of any of their lines.
    pub(crate) fn compact<M: Medium>(
        &mut self,
        medium: &M,
        epoch: impl FnOnce() -> u64,
        mut moved: impl FnMut(u64, Slot),
    ) -> bool {
        let salt = self.config.salt;
        let (old, rest) = self.settled_chunks(medium);
        let live: usize = old.iter().map(|&chunk| self.chunks[chunk as usize].valid.count_ones() as usize).sum();
        let needed = live.div_ceil(SLOTS);
        if needed >= old.len() || needed > self.room.free() {
            return false;
        }
        let words: Vec<u64> = old.iter().flat_map(|&chunk| self.words_in_use(medium, chunk)).collect();
        let new: Vec<(u64, u64)> = (0..needed).filter_map(|_| Some((self.room.take()?, self.new_id()))).collect();
        let rest_at = if rest == NONE { 0 } else { self.chunks[rest as usize].at };

        for (number, words) in words.chunks(SLOTS).enumerate() {
            let mut image = Image::new();
            words.iter().enumerate().for_each(|(nth, word)| image.set(self.order[nth], *word));
            let next = new.get(number + 1).map_or(rest_at, |next| next.0);
            if next != 0 || words.len() == SLOTS {
                image.seal(salt, new[number].1);
            }
            image.write(medium, salt, new[number], next);
        }
        self.store_head(medium, !self.alt, new.first().map_or(rest_at, |first| first.0));
        // B5.
        medium.fence();
        self.alt = !self.alt;
        let at = self.config.header + 24;
        medium.store(at, encode_place(salt, Of::Alt, u64::from(self.alt) << 10));
        medium.flush(at);
        medium.fence();

        self.replace(&old, rest, epoch());
        let mut before = NONE;
        for (words, (at, id)) in words.chunks(SLOTS).zip(new) {
            let index = self.add_vchunk(at, id);
            self.insert_behind(before, index);
            before = index;
            let is_open = rest == NONE && words.len() < SLOTS;
            self.chunks[index as usize].is_sealed = !is_open;
            if is_open {
                self.unsealed.push_back(id);
            }
            for (nth, word) in words.iter().enumerate() {
                let slot = Slot { chunk: index, slot: self.order[nth] };
                self.chunks[index as usize].valid |= 1 << slot.slot;
                if let Some(Entry::Extent { page, .. }) = Entry::decode(salt, *word) {
                    moved(page, slot);
                }
            }
            if rest == NONE {
                self.used = words.len();
            }
        }
        self.stats.slow_runs += 1;
        self.stats.copied += live as u64;
        true
    }

    /// The chunks before the rest, and the rest's first.
    fn settled_chunks<M: Medium>(&self, medium: &M) -> (Vec<u32>, u32) {
        let mut old = Vec::new();
        let mut at = self.head;
        while at != NONE {
            let vchunk = &self.chunks[at as usize];
            let is_stored = self.words_in_use(medium, at).all(|word| word != 0);
            if vchunk.freeing > 0 || !is_stored {
                break;
            }
            old.push(at);
            at = vchunk.next;
        }
        (old, at)
    }

    fn words_in_use<'a, M: Medium>(&'a self, medium: &'a M, chunk: u32) -> impl Iterator<Item = u64> + 'a {
        let vchunk = &self.chunks[chunk as usize];
        let valid = vchunk.valid;
        (0..SLOTS as u8)
            .filter(move |slot| valid >> slot & 1 == 1)
            .map(move |slot| chunk::load(medium, chunk::slot_at(vchunk.at, slot)))
    }

    fn replace(&mut self, old: &[u32], rest: u32, epoch: u64) {
        self.head = rest;
        match self.chunks.get_mut(rest as usize) {
            Some(rest) => rest.prev = NONE,
            None => (self.tail, self.used) = (NONE, SLOTS),
        }
        for &chunk in old {
            self.retire(chunk, epoch);
        }
        for &chunk in old {
            self.release_tombstones(chunk);
        }
    }
}
