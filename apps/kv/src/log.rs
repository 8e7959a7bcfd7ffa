//! The log of changes, for disks: what was written since the heap's last sync point.
//!
//! **What.** A sync point of the heap writes whole pages, which is much for one key. So a write is
//! acknowledged when its record is in the log; the heap's sync points come now and then, and make
//! the log before them void. After a crash the heap is opened at its last sync point, and the
//! records since then are done again.
//! **State.** Two files take turns, so that their blocks are on the disk already when written:
//! generation `g` is in file `g % 2`. The heap stores the generation that begins at its sync point.
//! ```text
//! file    0 magic | 8 version | 16 generation | 24 first epoch | 32 uuid, 2 words | 48 session | 56 check
//! frame   0 length of records | 8 check of them | 16 records: all of one sync, or none
//! record  0 length of key u32 | 4 length of value u32, or DEL or CLEAR | 8 epoch | key | value
//! ```
//! Checks cover the generation and the session, a random number of each start of the server: frames
//! of older generations, of another heap or of a copy that was restored are no frames.
//! **Invariants.** *KV8* generation `g + 1` is written only when the heap is durable at `g`. *KV9*
//! the records of a key are in the order of its changes, since its leaf is locked.
//! **Threads.** Writers append under a lock; one thread flushes. An *epoch* counts clearings: the
//! record of a change in a tree that was cleared meanwhile may follow the clearing's, and is
//! dropped.
//! **Failure.** A write or sync that fails ends the log, and with it the server: what was not
//! acknowledged may or may not be there.

use crate::store::{StoreError, word_of};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAGIC: u64 = u64::from_le_bytes(*b"CRKVLOG1");
const VERSION: u64 = 2;
/// The first frame lies on the next page.
const FIRST: u64 = 4096;
const HEADER_WORDS: usize = 8;
const FRAME_HEAD: u64 = 16;
const RECORD_HEAD: usize = 16;
const DEL: u32 = u32::MAX;
const CLEAR: u32 = u32::MAX - 1;

/// A file that keeps what was written when `sync` returns.
pub trait LogFile: Send + Sync {
    fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()>;
    fn sync(&self) -> std::io::Result<()>;
    /// Bytes from `at` on; fewer at the end of the file.
    fn read(&self, at: u64, len: usize) -> std::io::Result<Vec<u8>>;
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
}

/// A change of the tree.
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
    /// Where the next frame goes; held while writing.
    tail: Mutex<Tail>,
}

struct State {
    /// Records by generation: two while one ends.
    parts: Vec<Part>,
    /// Bytes of the generation in use.
    bytes: u64,
}

struct Part {
    generation: u64,
    epoch: u64,
    records: Vec<u8>,
}

struct Tail {
    generation: u64,
    at: u64,
}

impl Log {
    /// The log of the heap with this uuid. Read it with [`replay`](Self::replay), then begin a
    /// generation.
    pub fn new(files: [Box<dyn LogFile>; 2], uuid: u128) -> Self {
        let state = State { parts: Vec::new(), bytes: 0 };
        let session = RandomState::new().build_hasher().finish();
        Self { files, uuid, session, state: Mutex::new(state), tail: Mutex::new(Tail { generation: 0, at: FIRST }) }
    }

    /// Reads the records since the heap's sync point at `generation`, in order.
    pub fn replay(
        &self,
        generation: u64,
        mut f: impl FnMut(Record<'_>) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        let mut epoch = 0;
        for generation in [generation, generation + 1] {
            let file = &self.files[(generation % 2) as usize];
            let header = file.read(0, 8 * HEADER_WORDS).map_err(system)?;
            let words: Vec<u64> = header.chunks(8).map(word_of).collect();
            let [first, session] = [3, 6].map(|word| words.get(word).copied().unwrap_or(0));
            // The heap's own generation may have no records, and its file be of an older one.
            if words != self.header(generation, first, session) {
                continue;
            }
            epoch = epoch.max(first);
            let mut at = FIRST;
            while let Some(records) = read_frame(&**file, generation ^ session, at)? {
                let mut rest = &records[..];
                while let Some((record, of, len)) = parse(rest) {
                    rest = &rest[len..];
                    // A change of a later epoch proves the clearing, whose record may follow.
                    if of > epoch {
                        f(Record::Clear)?;
                        epoch = of;
                    }
                    if of == epoch && record != Record::Clear {
                        f(record)?;
                        count += 1;
                    }
                }
                at += frame_bytes(records.len());
            }
        }
        Ok(count)
    }

    /// Begins a generation: later records are of it. No thread appends meanwhile, and the heap's
    /// next sync point names it.
    pub fn begin(&self, generation: u64, epoch: u64) {
        let mut state = self.state();
        state.parts.push(Part { generation, epoch, records: Vec::new() });
        state.bytes = 0;
    }

    /// Appends a record of the tree's `epoch`. The leaf of its key is locked.
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

    /// Bytes that were appended to the generation in use.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Makes all records durable that were appended before the call.
    pub fn flush(&self) -> Result<(), StoreError> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let parts: Vec<Part> = {
            let mut state = self.state();
            let last = state.parts.len().saturating_sub(1);
            let mut parts: Vec<Part> = state.parts.drain(..last).collect();
            if let Some(now) = state.parts.last_mut() {
                let records = std::mem::take(&mut now.records);
                parts.push(Part { generation: now.generation, epoch: now.epoch, records });
            }
            parts
        };
        for part in parts.into_iter().filter(|part| !part.records.is_empty()) {
            let file = &self.files[(part.generation % 2) as usize];
            if tail.generation != part.generation {
                let header = self.header(part.generation, part.epoch, self.session).map(u64::to_le_bytes).concat();
                file.write(0, &header).map_err(system)?;
                *tail = Tail { generation: part.generation, at: FIRST };
            }
            let check = check_of(&part.records, part.generation ^ self.session, tail.at);
            let mut frame = Vec::with_capacity(FRAME_HEAD as usize + part.records.len());
            frame.extend_from_slice(&(part.records.len() as u64).to_le_bytes());
            frame.extend_from_slice(&check.to_le_bytes());
            frame.extend_from_slice(&part.records);
            file.write(tail.at, &frame).map_err(system)?;
            file.sync().map_err(system)?;
            tail.at += frame_bytes(part.records.len());
        }
        Ok(())
    }

    fn header(&self, generation: u64, epoch: u64, session: u64) -> [u64; HEADER_WORDS] {
        let words = [MAGIC, VERSION, generation, epoch, self.uuid as u64, (self.uuid >> 64) as u64, session];
        let check = check_of(&words.map(u64::to_le_bytes).concat(), generation, 0);
        let [a, b, c, d, e, f, g] = words;
        [a, b, c, d, e, f, g, check]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frames begin at multiples of 8.
fn frame_bytes(records: usize) -> u64 {
    (FRAME_HEAD + records as u64).next_multiple_of(8)
}

fn system(error: Error) -> StoreError {
    StoreError::System(error.raw_os_error().unwrap_or(0))
}

/// The records of a frame; `None` where there is no whole frame with this seed.
fn read_frame(file: &dyn LogFile, seed: u64, at: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let head = match file.read(at, FRAME_HEAD as usize) {
        Ok(head) if head.len() == FRAME_HEAD as usize => head,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(system(error)),
    };
    let (len, check) = (word_of(&head[..8]), word_of(&head[8..]));
    let Ok(len) = usize::try_from(len) else { return Ok(None) };
    let records = file.read(at + FRAME_HEAD, len).map_err(system)?;
    let is_whole = len > 0 && records.len() == len && check_of(&records, seed, at) == check;
    Ok(is_whole.then_some(records))
}

/// The first record, its epoch and its length.
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
    let mut check = seed.rotate_left(32) ^ at ^ bytes.len() as u64;
    for part in bytes.chunks(8) {
        let product = u128::from(check ^ word_of(part) ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93_u128;
        check = product as u64 ^ (product >> 64) as u64;
    }
    check
}

#[cfg(test)]
mod tests;
