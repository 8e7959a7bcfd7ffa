//! The log of changes, for disks: the writes since the heap's last sync point (`docs/kv.md`).
//!
//! **State.** Two files take turns, so that their blocks are on the disk already: generation `g` is
//! in file `g % 2`. The heap stores the generation that begins at its sync point.
//! ```text
//! file    0 magic | 8 version | 16 generation | 24 least length of the file | 32 uuid, 2 words
//!         48 session | 56 check
//! frame   0 length of records | 8 check | 16 first epoch of the generation
//!         24 1: the generation ends here | 32 records: all of one flush, or none
//! record  0 length of key u32 | 4 length of value u32, or DEL or CLEAR | 8 epoch | key | value
//! ```
//! Checks cover the generation and the session, a random number of each start, so that older frames
//! do not count. An *epoch* counts clearings: a record of a cleared tree may follow the clearing's,
//! and is dropped.
//!
//! **Invariants.** *KV8* generation `g + 1` is written only when the heap is durable at `g`. *KV9*
//! the records of a key are in the order of its changes, since its leaf is locked. *KV10* the
//! file's head names `g` durably before the heap needs it, so that one notices a missing or cut
//! log. *KV11* one frame is written at a time, so that a whole frame behind a torn one proves
//! damage.

use crate::store::{StoreError, word_of};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const MAGIC: u64 = u64::from_le_bytes(*b"CRKVLOG1");
const VERSION: u64 = 3;
/// On the next page.
const FIRST: u64 = 4096;
const HEADER_WORDS: usize = 8;
const FRAME_HEAD: usize = 32;
const RECORD_HEAD: usize = 16;
const FILL_BYTES: usize = 1 << 20;
const SEARCH_BYTES: usize = 1 << 20;
const DEL: u32 = u32::MAX;
const CLEAR: u32 = u32::MAX - 1;

/// The heap holds all changes, and its generation's file is not ready.
pub const NO_LOG: u64 = 1 << 63;

pub trait LogFile: Send + Sync {
    fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()>;
    fn sync(&self) -> std::io::Result<()>;
    /// Fewer bytes at the end.
    fn read(&self, at: u64, len: usize) -> std::io::Result<Vec<u8>>;
    fn size(&self) -> std::io::Result<u64>;
}

impl LogFile for File {
    fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> std::io::Result<()> {
        self.sync_data()
    }

    fn read(&self, at: u64, len: usize) -> std::io::Result<Vec<u8>> {
        let left = self.metadata()?.len().saturating_sub(at);
        let mut bytes = vec![0; len.min(usize::try_from(left).unwrap_or(usize::MAX))];
        self.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Earlier records were replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayError {
    Store(StoreError),
    /// The file is missing, or not the one that the heap needs.
    Missing(usize),
    /// A frame is torn, although a later one is whole: the file, and its offset there.
    Damaged(usize, u64),
    /// The file is shorter than it was: its length, and the least one.
    Cut(usize, u64, u64),
}

impl From<StoreError> for ReplayError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    Set { key: &'a [u8], value: &'a [u8] },
    Del { key: &'a [u8] },
    Clear,
}

pub struct Log {
    files: [Box<dyn LogFile>; 2],
    uuid: u128,
    session: u64,
    state: Mutex<State>,
    /// Held while writing.
    tail: Mutex<Tail>,
}

struct State {
    /// Two while a generation ends.
    parts: Vec<Part>,
    /// Of the generation in use.
    bytes: u64,
}

struct Part {
    generation: u64,
    epoch: u64,
    /// Behind room for a head.
    records: Vec<u8>,
}

struct Tail {
    generation: u64,
    at: u64,
    /// Not empty after a failure.
    frame: Vec<u8>,
}

impl Log {
    /// Call [`replay`](Self::replay) next.
    pub fn new(files: [Box<dyn LogFile>; 2], uuid: u128) -> Self {
        let state = State { parts: Vec::new(), bytes: 0 };
        let session = RandomState::new().build_hasher().finish();
        let tail = Tail { generation: 0, at: FIRST, frame: Vec::new() };
        Self { files, uuid, session, state: Mutex::new(state), tail: Mutex::new(tail) }
    }

    /// In order, since the sync point at `generation`.
    pub fn replay(
        &self,
        generation: u64,
        mut f: impl FnMut(Record<'_>) -> Result<(), StoreError>,
    ) -> Result<(), ReplayError> {
        let (mut epoch, mut is_needed) = (0, true);
        for generation in [generation, generation + 1] {
            let i = (generation % 2) as usize;
            let file = &self.files[i];
            let head = Head::read(&**file)?.filter(|head| head.generation == generation && head.uuid == self.uuid);
            let Some(Head { least, session, .. }) = head else {
                if is_needed {
                    return Err(ReplayError::Missing(i));
                }
                break;
            };
            let len = file.size().map_err(system)?;
            if len < least {
                return Err(ReplayError::Cut(i, len, least));
            }
            is_needed = false;
            let (seed, mut at) = (generation ^ session, FIRST);
            while let Some(frame) = read_frame(&**file, seed, at)? {
                epoch = epoch.max(word_of(&frame[16..24]));
                is_needed |= frame[24] != 0;
                let mut rest = &frame[FRAME_HEAD..];
                while let Some((record, of, len)) = parse(rest) {
                    rest = &rest[len..];
                    // The clearing's record may follow.
                    if of > epoch {
                        f(Record::Clear)?;
                        epoch = of;
                    }
                    if of == epoch && record != Record::Clear {
                        f(record)?;
                    }
                }
                at += frame_bytes(&frame);
            }
            if has_later_frame(&**file, seed, at)? {
                return Err(ReplayError::Damaged(i, at));
            }
        }
        Ok(())
    }

    /// The newest generation in the files.
    pub fn newest(&self) -> Result<Option<u64>, StoreError> {
        let mut newest = None;
        for file in &self.files {
            let head = Head::read(&**file)?.filter(|head| head.uuid == self.uuid);
            newest = newest.max(head.map(|head| head.generation));
        }
        Ok(newest)
    }

    /// Durable before the heap's sync point.
    pub fn prepare(&self, generation: u64) -> Result<(), StoreError> {
        let file = &self.files[(generation % 2) as usize];
        let len = file.size().map_err(system)?;
        let head = Head { generation, least: len.max(FIRST), uuid: self.uuid, session: self.session };
        let mut bytes = head.words().map(u64::to_le_bytes).concat();
        if len < FIRST {
            bytes.resize(FIRST as usize, 0);
        }
        file.write(0, &bytes).and_then(|()| file.sync()).map_err(system)
    }

    /// So that flushes find blocks in place.
    pub fn fill(&self, bytes: u64) -> Result<(), StoreError> {
        let zeros = vec![0; FILL_BYTES];
        for file in &self.files {
            loop {
                let tail = self.tail();
                let len = file.size().map_err(system)?;
                if len >= bytes {
                    break;
                }
                file.write(len, &zeros[..zeros.len().min((bytes - len) as usize)]).map_err(system)?;
                drop(tail);
                // A flush that waits gets the lock: it is not fair.
                std::thread::sleep(Duration::from_millis(1));
            }
            file.sync().map_err(system)?;
        }
        Ok(())
    }

    /// No thread appends. The heap's next sync point names the generation.
    pub fn begin(&self, generation: u64, epoch: u64) {
        let mut state = self.state();
        state.parts.push(Part { generation, epoch, records: vec![0; FRAME_HEAD] });
        state.bytes = 0;
    }

    /// The key's leaf is locked.
    pub fn append(&self, record: Record<'_>, epoch: u64) {
        let (key, value, mark) = match record {
            Record::Set { key, value } => (key, value, value.len() as u32),
            Record::Del { key } => (key, &[][..], DEL),
            Record::Clear => (&[][..], &[][..], CLEAR),
        };
        let mut state = self.state();
        state.bytes += (RECORD_HEAD + key.len() + value.len()) as u64;
        let Some(part) = state.parts.last_mut() else { return };
        part.records.extend_from_slice(&(key.len() as u32).to_le_bytes());
        part.records.extend_from_slice(&mark.to_le_bytes());
        part.records.extend_from_slice(&epoch.to_le_bytes());
        part.records.extend_from_slice(key);
        part.records.extend_from_slice(value);
    }

    /// Of the generation in use.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Makes earlier records durable.
    pub fn flush(&self) -> Result<(), StoreError> {
        let mut tail = self.tail();
        // It could not be written before.
        self.write(&mut tail)?;
        while self.take(&mut tail) {
            self.write(&mut tail)?;
        }
        Ok(())
    }

    /// `false`: no records.
    fn take(&self, tail: &mut Tail) -> bool {
        let mut state = self.state();
        let is_last = state.parts.len() > 1;
        let Some(part) = state.parts.first_mut() else { return false };
        if part.records.len() == FRAME_HEAD && !is_last {
            return false;
        }
        if tail.generation != part.generation {
            (tail.generation, tail.at) = (part.generation, FIRST);
        }
        let epoch = part.epoch;
        tail.frame.clear();
        tail.frame.resize(FRAME_HEAD, 0);
        std::mem::swap(&mut tail.frame, &mut part.records);
        if is_last {
            state.parts.remove(0);
        }
        drop(state);
        let len = (tail.frame.len() - FRAME_HEAD) as u64;
        for (i, word) in [len, 0, epoch, u64::from(is_last)].into_iter().enumerate() {
            tail.frame[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
        }
        let check = check_of(&tail.frame, tail.generation ^ self.session, tail.at);
        tail.frame[8..16].copy_from_slice(&check.to_le_bytes());
        true
    }

    fn write(&self, tail: &mut Tail) -> Result<(), StoreError> {
        if !tail.frame.is_empty() {
            let file = &self.files[(tail.generation % 2) as usize];
            file.write(tail.at, &tail.frame).and_then(|()| file.sync()).map_err(system)?;
            tail.at += frame_bytes(&tail.frame);
            tail.frame.clear();
        }
        Ok(())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Head {
    generation: u64,
    /// Bytes that the file has at least.
    least: u64,
    uuid: u128,
    session: u64,
}

impl Head {
    fn words(&self) -> [u64; HEADER_WORDS] {
        let Self { generation, least, uuid, session } = *self;
        let words = [MAGIC, VERSION, generation, least, uuid as u64, (uuid >> 64) as u64, session];
        let check = check_of(&words.map(u64::to_le_bytes).concat(), generation, 0);
        let [a, b, c, d, e, f, g] = words;
        [a, b, c, d, e, f, g, check]
    }

    /// `None`: not whole, or of another version.
    fn read(file: &dyn LogFile) -> Result<Option<Self>, StoreError> {
        let bytes = file.read(0, 8 * HEADER_WORDS).map_err(system)?;
        let words: Vec<u64> = bytes.chunks(8).map(word_of).collect();
        let [_, _, generation, least, low, high, session, _] = words[..] else { return Ok(None) };
        let head = Self { generation, least, uuid: u128::from(low) | u128::from(high) << 64, session };
        Ok((words == head.words()).then_some(head))
    }
}

/// Of any heap.
pub fn holds_records(file: &dyn LogFile) -> Result<bool, StoreError> {
    let Some(Head { generation, session, .. }) = Head::read(file)? else { return Ok(false) };
    Ok(read_frame(file, generation ^ session, FIRST)?.is_some())
}

fn frame_bytes(frame: &[u8]) -> u64 {
    (frame.len() as u64).next_multiple_of(8)
}

fn system(error: Error) -> StoreError {
    StoreError::System(error.raw_os_error().unwrap_or(0))
}

/// `None`: no whole frame with this seed.
fn read_frame(file: &dyn LogFile, seed: u64, at: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let head = file.read(at, FRAME_HEAD).map_err(system)?;
    if head.len() < FRAME_HEAD || !may_be_head(&head) {
        return Ok(None);
    }
    let Ok(len) = usize::try_from(word_of(&head[..8])) else { return Ok(None) };
    let Some(end) = len.checked_add(FRAME_HEAD) else { return Ok(None) };
    let mut frame = file.read(at, end).map_err(system)?;
    let check = word_of(&head[8..16]);
    if frame.len() < end {
        return Ok(None);
    }
    frame[8..16].fill(0);
    Ok((check_of(&frame, seed, at) == check).then_some(frame))
}

fn may_be_head(head: &[u8]) -> bool {
    let (len, is_last) = (word_of(&head[..8]), word_of(&head[24..32]));
    is_last <= 1 && len | is_last != 0
}

fn has_later_frame(file: &dyn LogFile, seed: u64, at: u64) -> Result<bool, StoreError> {
    let end = file.size().map_err(system)?;
    for from in (at + 8..end).step_by(SEARCH_BYTES) {
        let bytes = file.read(from, SEARCH_BYTES + FRAME_HEAD).map_err(system)?;
        for (head, place) in bytes.windows(FRAME_HEAD).step_by(8).zip((from..end).step_by(8)) {
            let is_inside = word_of(&head[..8]) <= end - place;
            if is_inside && may_be_head(head) && read_frame(file, seed, place)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn parse(bytes: &[u8]) -> Option<(Record<'_>, u64, usize)> {
    let head = bytes.get(..RECORD_HEAD)?;
    let lengths = word_of(head);
    let (key_len, mark) = ((lengths & 0xffff_ffff) as usize, (lengths >> 32) as u32);
    let value_len = if mark >= CLEAR { 0 } else { mark as usize };
    let len = RECORD_HEAD + key_len + value_len;
    let body = bytes.get(RECORD_HEAD..len)?;
    let (key, value) = body.split_at(key_len);
    let record = match mark {
        CLEAR => Record::Clear,
        DEL => Record::Del { key },
        _ => Record::Set { key, value },
    };
    Some((record, word_of(&head[8..]), len))
}

fn check_of(bytes: &[u8], seed: u64, at: u64) -> u64 {
    // Multiplied, so that equal changed bits of the length and a frame's first word differ.
    let mut check = seed.rotate_left(32) ^ at ^ (bytes.len() as u64).wrapping_mul(0xa076_1d64_78bd_642f);
    for part in bytes.chunks(8) {
        let product = u128::from(check ^ word_of(part) ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
        check = product as u64 ^ (product >> 64) as u64;
    }
    check
}

#[cfg(test)]
mod tests;
