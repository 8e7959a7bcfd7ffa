//! The trace of a page heap, as bytes of a file (docs/trace.md; TEMERAIRE §6.2). Pages of 8 KiB,
//! microseconds since the recording began, little-endian.
//! ```text
//! file:   header │ block 1 │ block 2 │ …                 block: 255 slots of events │ one slot for the seal
//! event:  time_us 48 bits │ kind 4 │ dense 1 │ log2 of alignment 5 │ zeros 6 ║ first page 32 │ pages 32
//! seal:   dropped 48 bits │ kind 4 = 15 │ last 1 │ zeros 3 │ events 8        ║ checksum 64
//! ```
//! A slot's first word is written last: a non-empty slot is complete, even after a kill.

mod read;

pub use read::{Trace, TraceError, Wrong};

use craton_base::{Density, PAGE_SIZE, PAGES_PER_HUGEPAGE, PageId, PageRange, Pages};

pub const MAGIC: [u8; 8] = *b"craton\x1aT";
pub const VERSION: u32 = 1;
pub const BLOCK_BYTES: usize = 4096;
pub const SLOT_BYTES: usize = 16;
/// The seal's slot follows.
pub const BLOCK_EVENTS: usize = BLOCK_BYTES / SLOT_BYTES - 1;

const TIME_BITS: u32 = 48;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
const KIND_SHIFT: u32 = TIME_BITS;
const FLAG_SHIFT: u32 = 52;
const ALIGN_SHIFT: u32 = 53;
const EVENT_USED: u32 = 58;
const COUNT_SHIFT: u32 = 56;
const SEAL_KIND: u64 = 15;
const SEAL_ZEROS: u64 = 0b111 << (FLAG_SHIFT + 1);

pub type Slot = [u64; 2];

/// Successful.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    Alloc = 1,
    Free = 2,
    Resize = 3,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// 48 bits: nine years.
    pub time_us: u64,
    pub kind: Kind,
    /// With its new length.
    pub span: PageRange,
    /// 1 except for [`Kind::Alloc`].
    pub align: Pages,
    pub density: Density,
}

impl Event {
    pub const fn encode(&self) -> Slot {
        let dense = matches!(self.density, Density::Dense) as u64;
        let time = if self.time_us > TIME_MASK { TIME_MASK } else { self.time_us };
        let head = time
            | (self.kind as u64) << KIND_SHIFT
            | dense << FLAG_SHIFT
            | (self.align.0.trailing_zeros() as u64) << ALIGN_SHIFT;
        [head, self.span.first.0 as u64 | (self.span.len.0 as u64) << 32]
    }

    /// `None`: empty.
    #[inline]
    pub const fn decode(slot: Slot) -> Option<Self> {
        let [head, span] = slot;
        let kind = match head >> KIND_SHIFT & 15 {
            1 => Kind::Alloc,
            2 => Kind::Free,
            3 => Kind::Resize,
            _ => return None,
        };
        let align = head >> ALIGN_SHIFT & 31;
        let density = if head >> FLAG_SHIFT & 1 == 1 { Density::Dense } else { Density::Sparse };
        let range = PageRange::new(PageId(span as u32), Pages((span >> 32) as u32));
        if head >> EVENT_USED != 0 || range.len.0 == 0 {
            return None;
        }
        Some(Self { time_us: head & TIME_MASK, kind, span: range, align: Pages(1 << align), density })
    }
}

/// Of a full block, or the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seal {
    pub events: u8,
    /// The file ends here.
    pub last: bool,
    /// At the bound, or because the file could not grow; in the last block.
    pub dropped: u64,
}

impl Seal {
    const fn head(self) -> u64 {
        let dropped = if self.dropped > TIME_MASK { TIME_MASK } else { self.dropped };
        dropped | SEAL_KIND << KIND_SHIFT | (self.last as u64) << FLAG_SHIFT | (self.events as u64) << COUNT_SHIFT
    }

    /// `sum` has seen the events.
    pub const fn encode(self, mut sum: Sum) -> Slot {
        sum.mix(self.head());
        [self.head(), sum.0]
    }

    const fn decode(slot: Slot) -> Option<Self> {
        let head = slot[0];
        if head >> KIND_SHIFT & 15 != SEAL_KIND || head & SEAL_ZEROS != 0 {
            return None;
        }
        let last = head >> FLAG_SHIFT & 1 == 1;
        Some(Self { events: (head >> COUNT_SHIFT) as u8, last, dropped: head & TIME_MASK })
    }
}

/// Its steps are invertible: a changed word changes the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sum(u64);

impl Sum {
    pub const fn of_block(number: u64) -> Self {
        let mut sum = Self(0);
        sum.mix(number + 1);
        sum
    }

    #[inline]
    pub const fn add(&mut self, slot: Slot) {
        self.mix(slot[0]);
        self.mix(slot[1]);
    }

    #[inline]
    const fn mix(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Events.
    pub bound: u64,
    /// Most pages of the recorded heap.
    pub region: Pages,
}

const HEADER_WORDS: usize = 5;

impl Header {
    pub const fn encode(&self) -> [u64; HEADER_WORDS + 1] {
        let mut words = [
            u64::from_le_bytes(MAGIC),
            VERSION as u64 | (SLOT_BYTES as u64) << 32,
            PAGE_SIZE as u64 | (PAGES_PER_HUGEPAGE as u64) << 32,
            self.bound,
            self.region.0 as u64,
            0,
        ];
        let (mut sum, mut i) = (Sum::of_block(0), 0);
        while i < HEADER_WORDS {
            sum.mix(words[i]);
            i += 1;
        }
        words[HEADER_WORDS] = sum.0;
        words
    }
}

#[cfg(test)]
mod tests;
