//! The symbols in a module's file (System V ABI, 64-bit ELF, native byte order).
//!
//! A corrupt file has no names. It is read, never mapped: truncation raises no signal.
//! **Unsafe.** Reads the kernel's module by address.

use super::{Mapping, Name};
use crate::small_file::{File, PathText};

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;

const AT_A_TIME: usize = 64;

const LOADED: u32 = 1;
const ALL_SYMBOLS: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;

pub(super) struct Image {
    source: Source,
    header: [u8; HEADER],
}

enum Source {
    File(File),
    /// Start and bytes.
    Memory(usize, usize),
}

#[derive(Clone, Copy)]
struct Part {
    at: u64,
    bytes: u64,
}

impl Image {
    pub(super) fn open(mapping: &Mapping) -> Option<Self> {
        let source = match mapping.path.as_bytes() {
            b"[vdso]" => Source::Memory(mapping.start, mapping.end - mapping.start),
            [b'/', ..] => Source::File(open(mapping)?),
            _ => return None,
        };
        let mut header = [0; HEADER];
        source.read(0, &mut header)?;
        // 64 bits, native byte order.
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        header.starts_with(&[0x7f, b'E', b'L', b'F', 2, order]).then_some(Self { source, header })
    }

    pub(super) fn address(&self, in_file: usize) -> Option<usize> {
        let (first, count) = (u64_at(&self.header, 32), u16_at(&self.header, 56));
        (0..u64::from(count)).find_map(|i| {
            let segment: [u8; SEGMENT] = self.record(first, i)?;
            let (offset, address, bytes) = (u64_at(&segment, 8), u64_at(&segment, 16), u64_at(&segment, 32));
            let inside = (in_file as u64).checked_sub(offset).filter(|at| *at < bytes)?;
            (u32_at(&segment, 0) == LOADED).then(|| (address + inside) as usize)
        })
    }

    #[inline(never)]
    pub(super) fn name(&self, address: usize, into: &mut Name) {
        for kind in [ALL_SYMBOLS, DYNAMIC_SYMBOLS] {
            if let Some((symbols, texts)) = self.tables(kind)
                && let Some(best) = self.best(symbols, address as u64)
                && self.text(texts, best.name, into).is_some()
            {
                into.offset = address - best.start as usize;
                return;
            }
        }
    }

    fn tables(&self, kind: u32) -> Option<(Part, Part)> {
        let (first, count) = (u64_at(&self.header, 40), u16_at(&self.header, 60));
        let section = |i: u64| self.record::<SECTION>(first, i);
        let part = |s: &[u8]| Part { at: u64_at(s, 24), bytes: u64_at(s, 32) };
        let symbols = (0..u64::from(count)).filter_map(section).find(|s| u32_at(s, 4) == kind)?;
        let texts = section(u64::from(u32_at(&symbols, 40)))?;
        Some((part(&symbols), part(&texts)))
    }

    #[inline(never)]
    fn best(&self, symbols: Part, address: u64) -> Option<Symbol> {
        let mut buffer = [0u8; AT_A_TIME * SYMBOL];
        let mut best = None;
        // Past its end, symbols without a size do not count.
        let mut nearest: Option<Symbol> = None;
        let mut at = 0;
        while at < symbols.bytes {
            let some = (symbols.bytes - at).min(buffer.len() as u64) as usize;
            self.source.read(symbols.at.checked_add(at)?, &mut buffer[..some])?;
            at += some as u64;
            for symbol in buffer[..some].chunks_exact(SYMBOL).filter_map(Symbol::of_code) {
                if symbol.start > address {
                    continue;
                }
                if address - symbol.start < symbol.bytes && best.is_none_or(|b| symbol.is_better(&b)) {
                    best = Some(symbol);
                }
                if nearest.is_none_or(|n| symbol.start > n.start) {
                    nearest = Some(symbol);
                }
            }
        }
        best.or(nearest.filter(|n| n.bytes == 0))
    }

    fn text(&self, texts: Part, at: u32, into: &mut Name) -> Option<()> {
        let room = texts.bytes.checked_sub(u64::from(at))?.min(into.text.len() as u64) as usize;
        let bytes = &mut into.text[..room];
        self.source.read(texts.at.checked_add(u64::from(at))?, bytes)?;
        let end = bytes.iter().position(|b| *b == 0);
        (into.len, into.is_cut) = (end.unwrap_or(room), end.is_none());
        (into.len > 0).then_some(())
    }

    fn record<const N: usize>(&self, first: u64, i: u64) -> Option<[u8; N]> {
        let mut record = [0; N];
        self.source.read(first.checked_add(i * N as u64)?, &mut record)?;
        Some(record)
    }
}

/// A replaced file by the kernel's link, which needs privilege.
fn open(mapping: &Mapping) -> Option<File> {
    if !mapping.path.as_bytes().ends_with(b" (deleted)") {
        return File::open(&mapping.path).ok();
    }
    let mut path = PathText::new(b"/proc/self/map_files/")?;
    (push_hexadecimal(&mut path, mapping.start) && path.push(b"-") && push_hexadecimal(&mut path, mapping.end))
        .then(|| File::open(&path).ok())?
}

fn push_hexadecimal(path: &mut PathText, number: usize) -> bool {
    let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
    (0..digits).rev().all(|i| path.push(&[b"0123456789abcdef"[number >> (4 * i) & 15]]))
}

impl Source {
    fn read(&self, at: u64, into: &mut [u8]) -> Option<()> {
        match self {
            Self::File(file) => file.read_at(at, into),
            Self::Memory(start, bytes) => {
                let at = usize::try_from(at).ok()?;
                at.checked_add(into.len()).filter(|end| end <= bytes)?;
                // SAFETY: the kernel's module holds the bytes and stays mapped.
                into.copy_from_slice(unsafe { core::slice::from_raw_parts((start + at) as *const u8, into.len()) });
                Some(())
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    start: u64,
    bytes: u64,
    is_global: bool,
}

impl Symbol {
    /// Functions, and untyped symbols as of assembly.
    fn of_code(record: &[u8]) -> Option<Self> {
        let info = record[4];
        let is_code = matches!(info & 15, 0 | 2 | 10);
        (is_code && u16_at(record, 6) != 0).then(|| Self {
            name: u32_at(record, 0),
            start: u64_at(record, 8),
            bytes: u64_at(record, 16),
            is_global: info >> 4 == 1,
        })
    }

    /// The later start; of several names the global one.
    fn is_better(&self, than: &Self) -> bool {
        (self.start, self.is_global) > (than.start, than.is_global)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(four)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(eight)
}
