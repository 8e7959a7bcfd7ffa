//! Numbers from another process's memory, in cached pieces.

use crate::memory::Memory;
use std::cell::RefCell;

const PIECE: u64 = 64 << 10;
const PIECES: usize = 512;

struct Piece {
    at: u64,
    bytes: Vec<u8>,
    /// A bit for each readable machine page.
    pages: u32,
}

const PAGE: u64 = 4096;

pub struct Reader<'m> {
    pub memory: &'m dyn Memory,
    pieces: RefCell<Vec<Option<Piece>>>,
}

impl<'m> Reader<'m> {
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
            // An unreadable part is a whole page, or the end.
            done = (done + got) / PAGE * PAGE + PAGE;
        }
        Piece { at, bytes, pages }
    }

    /// Leaves unreadable bytes unchanged; `true`: none.
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

    fn whole<B: AsMut<[u8]>>(&self, at: u64, mut bytes: B) -> Result<B, String> {
        let (read, len) = (self.read(at, bytes.as_mut()), bytes.as_mut().len());
        let name = || self.memory.name();
        read.then_some(bytes).ok_or_else(|| format!("{}: {len} bytes at {at:#x} cannot be read", name()))
    }

    pub fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>, String> {
        self.whole(at, vec![0; len])
    }

    /// 0 if unreadable.
    pub fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        self.read(at, &mut byte);
        byte[0]
    }

    pub fn word(&self, at: u64) -> Result<u64, String> {
        self.whole(at, [0; 8]).map(u64::from_le_bytes)
    }

    pub fn u32(&self, at: u64) -> Result<u32, String> {
        self.whole(at, [0; 4]).map(u32::from_le_bytes)
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

pub fn word_in(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(part(bytes, at))
}

pub fn u32_in(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(part(bytes, at))
}

pub fn u16_in(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(part(bytes, at))
}

pub fn text_in(bytes: &[u8]) -> String {
    let text = bytes.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
