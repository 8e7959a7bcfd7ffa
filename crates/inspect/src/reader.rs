//! Numbers out of another process's memory, read in large pieces that are kept.
//!
//! **Cost.** A piece is read once while it is not displaced; memory for [`PIECES`] pieces of [`PIECE`] bytes.

use crate::memory::Memory;
use std::cell::RefCell;

/// Bytes read at a time.
const PIECE: u64 = 64 << 10;
/// Pieces that are kept: 32 MiB.
const PIECES: usize = 512;

/// One piece: where it begins, its bytes, and how many of them could be read.
struct Piece {
    at: u64,
    bytes: Vec<u8>,
    /// For each machine page of it, whether it could be read.
    pages: u32,
}

const PAGE: u64 = 4096;

/// Reads a process's memory.
pub struct Reader<'m> {
    /// The process.
    pub memory: &'m dyn Memory,
    pieces: RefCell<Vec<Option<Piece>>>,
}

impl<'m> Reader<'m> {
    /// A reader that has nothing yet.
    pub fn new(memory: &'m dyn Memory) -> Self {
        Self { memory, pieces: RefCell::new((0..PIECES).map(|_| None).collect()) }
    }

    fn load(&self, at: u64) -> Piece {
        let mut bytes = vec![0; PIECE as usize];
        let mut pages = 0u32;
        let mut done = 0;
        while done < PIECE {
            let got = self.memory.read(at + done, &mut bytes[done as usize..]) as u64;
            for page in done.div_ceil(PAGE)..(done + got) / PAGE {
                pages |= 1 << page;
            }
            // What cannot be read is a whole page, or the end.
            done = (done + got) / PAGE * PAGE + PAGE;
        }
        Piece { at, bytes, pages }
    }

    /// Reads bytes, as far as they can be read; the others stay as they are. Says whether all could.
    pub fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let (mut done, mut all) = (0usize, true);
        while done < into.len() {
            let Some(here) = at.checked_add(done as u64) else { return false };
            let (base, within) = (here / PIECE * PIECE, here % PIECE);
            let page = within / PAGE;
            let len = ((page + 1) * PAGE - within).min((into.len() - done) as u64) as usize;
            let mut pieces = self.pieces.borrow_mut();
            let slot = &mut pieces[(base / PIECE) as usize % PIECES];
            if slot.as_ref().is_none_or(|piece| piece.at != base) {
                *slot = Some(self.load(base));
            }
            if let Some(piece) = slot
                && piece.pages >> page & 1 == 1
            {
                into[done..done + len].copy_from_slice(&piece.bytes[within as usize..within as usize + len]);
            } else {
                all = false;
            }
            done += len;
        }
        all
    }

    /// Bytes, all of which must be there.
    pub fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; len];
        match self.read(at, &mut bytes) {
            true => Ok(bytes),
            false => Err(self.missing(at, len)),
        }
    }

    fn missing(&self, at: u64, len: usize) -> String {
        format!("{}: {len} bytes at {at:#x} cannot be read", self.memory.name())
    }

    /// A number of so many bytes.
    fn number<const N: usize>(&self, at: u64) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        if self.read(at, &mut bytes) { Ok(bytes) } else { Err(self.missing(at, N)) }
    }

    /// A number of 8 bytes.
    pub fn word(&self, at: u64) -> Result<u64, String> {
        self.number(at).map(u64::from_le_bytes)
    }

    /// A number of 4 bytes.
    pub fn u32(&self, at: u64) -> Result<u32, String> {
        self.number(at).map(u32::from_le_bytes)
    }
}

/// A number in bytes that were read: 8 bytes, little end first; 0 behind the end.
pub fn word_in(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.get(..8)).and_then(|part| part.try_into().ok());
    part.map_or(0, u64::from_le_bytes)
}

/// Likewise of 4 bytes.
pub fn u32_in(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..).and_then(|rest| rest.get(..4)).and_then(|part| part.try_into().ok());
    part.map_or(0, u32::from_le_bytes)
}

/// Likewise of 2 bytes.
pub fn u16_in(bytes: &[u8], at: usize) -> u16 {
    let part = bytes.get(at..).and_then(|rest| rest.get(..2)).and_then(|part| part.try_into().ok());
    part.map_or(0, u16::from_le_bytes)
}
