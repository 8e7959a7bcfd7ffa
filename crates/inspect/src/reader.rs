//! Numbers from another process's memory: from its copy, or else in cached pages.

use crate::memory::{Held, Memory, words};
use std::cell::RefCell;

const PAGE: u64 = 4096;
/// Pages that are kept.
const PAGES: usize = 4096;
/// Words that are fetched at a time.
const PIECE: usize = 1 << 16;

struct Page {
    at: u64,
    bytes: [u8; PAGE as usize],
    is_readable: bool,
}

pub struct Reader<'m> {
    pub memory: &'m dyn Memory,
    pages: RefCell<Vec<Option<Box<Page>>>>,
    piece: RefCell<Vec<u8>>,
}

impl<'m> Reader<'m> {
    pub fn new(memory: &'m dyn Memory) -> Self {
        let pages = RefCell::new((0..PAGES).map(|_| None).collect());
        Self { memory, pages, piece: RefCell::default() }
    }

    /// Leaves unreadable bytes unchanged; `true`: none.
    pub fn read(&self, at: u64, into: &mut [u8]) -> bool {
        if let Held::Bytes(bytes) = self.memory.held(at)
            && let Some(bytes) = bytes.get(..into.len())
        {
            into.copy_from_slice(bytes);
            return true;
        }
        let (mut done, mut all) = (0usize, true);
        while done < into.len() {
            let Some(here) = at.checked_add(done as u64) else { return false };
            let within = here % PAGE;
            let whole = (into.len() - done) as u64 / PAGE * PAGE;
            if within == 0 && whole > PAGE {
                let got = self.memory.read(here, &mut into[done..done + whole as usize]) as u64 / PAGE * PAGE;
                done += got as usize;
                if got == whole {
                    continue;
                }
            }
            let here = at + done as u64;
            let len = (PAGE - here % PAGE).min((into.len() - done) as u64) as usize;
            all &= self.read_in_page(here, &mut into[done..done + len]);
            done += len;
        }
        all
    }

    fn read_in_page(&self, at: u64, into: &mut [u8]) -> bool {
        let (base, within) = (at / PAGE * PAGE, (at % PAGE) as usize);
        let mut pages = self.pages.borrow_mut();
        let slot = &mut pages[(base / PAGE) as usize % PAGES];
        if slot.as_ref().is_none_or(|page| page.at != base) {
            let mut page = Box::new(Page { at: base, bytes: [0; PAGE as usize], is_readable: false });
            page.is_readable = self.memory.read(base, &mut page.bytes) == PAGE as usize;
            *slot = Some(page);
        }
        let Some(page) = slot.as_ref().filter(|page| page.is_readable) else { return false };
        into.copy_from_slice(&page.bytes[within..within + into.len()]);
        true
    }

    /// Calls `each` with place and value of each aligned word of a range; unreadable ones are left
    /// out, and zeros of pages that were never written.
    pub fn for_each_word(&self, from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
        let mut at = from.next_multiple_of(8);
        while at < to {
            let left = to - at;
            let done = match self.memory.held(at) {
                Held::Zeros(bytes) => bytes,
                Held::Bytes(bytes) => {
                    let len = (bytes.len() as u64).min(left);
                    (at..).step_by(8).zip(words(&bytes[..len as usize])).for_each(|(at, word)| each(at, word));
                    len
                }
                Held::Elsewhere => {
                    let len = left.min(PIECE as u64) as usize;
                    let mut piece = self.piece.take();
                    piece.clear();
                    piece.resize(len, 0);
                    self.read(at, &mut piece);
                    (at..).step_by(8).zip(words(&piece)).for_each(|(at, word)| each(at, word));
                    self.piece.replace(piece);
                    len as u64
                }
            };
            at = at.saturating_add(done).checked_next_multiple_of(8).unwrap_or(to);
        }
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

#[cfg(test)]
mod tests;
