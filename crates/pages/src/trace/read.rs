//! Reads a trace: checks it, then iterates without checks.

use super::{BLOCK_BYTES, BLOCK_EVENTS, Event, HEADER_WORDS, Header, MAGIC, SLOT_BYTES, Seal, Slot, Sum, VERSION};
use core::fmt::{Display, Formatter, Result as FmtResult};
use craton_base::{PAGE_SIZE, PAGES_PER_HUGEPAGE, Pages};

#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    blocks: &'a [[u8; BLOCK_BYTES]],
    header: Header,
    events: u64,
    unchecked: u64,
    complete: bool,
    dropped: u64,
    duration_us: u64,
    pages: Pages,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// In bytes.
    pub at: u64,
    pub wrong: Wrong,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Wrong {
    NoTrace,
    Version(u32),
    SlotBytes(u32),
    PageSize(u32, u32),
    HeaderChecksum,
    /// Inside the header or a block.
    CutInside,
    /// After a block that is not the last.
    CutBehind,
    Checksum,
    NoEvent,
    BackInTime,
    BeyondRegion(Pages),
    BehindTheEnd,
}

impl Display for TraceError {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match (self.at as usize).checked_sub(BLOCK_BYTES) {
            Some(at) => write!(f, "at byte {} (block {}): ", self.at, at / BLOCK_BYTES + 1)?,
            None => write!(f, "at byte {} (header): ", self.at)?,
        }
        match self.wrong {
            Wrong::NoTrace => write!(f, "no trace of a page heap; one begins with \"craton\", 0x1a, \"T\""),
            Wrong::Version(v) => write!(f, "version {v} of the format; this program reads version {VERSION}"),
            Wrong::SlotBytes(n) => write!(f, "events of {n} bytes; version {VERSION} has {SLOT_BYTES}"),
            Wrong::PageSize(bytes, pages) => write!(
                f,
                "pages of {bytes} bytes and hugepages of {pages} pages; this program has {PAGE_SIZE} and \
                 {PAGES_PER_HUGEPAGE}"
            ),
            Wrong::HeaderChecksum => write!(f, "the header's checksum is wrong: it was changed; record anew"),
            Wrong::CutInside => write!(f, "the file ends inside a block of {BLOCK_BYTES} bytes: it was cut off"),
            Wrong::CutBehind => {
                write!(f, "the file ends, and the block before is not marked as the last one: it was cut off")
            }
            Wrong::Checksum => write!(f, "the checksum or number of events of this block is wrong: it was changed"),
            Wrong::NoEvent => write!(f, "no event; expected is an allocation, a free, a resize, or zeros"),
            Wrong::BackInTime => write!(f, "an event that is earlier than the one before it"),
            Wrong::BeyondRegion(region) => write!(f, "an event beyond the {} pages of the recorded heap", region.0),
            Wrong::BehindTheEnd => {
                write!(f, "something behind the end of the trace; expected are zeros or the file's end")
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn slot(block: &[u8; BLOCK_BYTES], i: usize) -> Slot {
    [word(block, i * SLOT_BYTES), word(block, i * SLOT_BYTES + 8)]
}

impl Header {
    /// # Errors
    /// No trace, another version or page size, changed, or cut off.
    pub fn decode(file: &[u8]) -> Result<Self, TraceError> {
        let fail = |at: usize, wrong| Err(TraceError { at: at as u64, wrong });
        let known = file.len().min(MAGIC.len());
        if known == 0 || file[..known] != MAGIC[..known] {
            return fail(0, Wrong::NoTrace);
        }
        if file.len() < BLOCK_BYTES {
            return fail(file.len(), Wrong::CutInside);
        }
        let half = |i: usize, high: bool| (word(file, 8 * i) >> if high { 32 } else { 0 }) as u32;
        if half(1, false) != VERSION {
            return fail(8, Wrong::Version(half(1, false)));
        }
        let header = Self { bound: word(file, 24), region: Pages(half(4, false)) };
        // Another program may have made it, for other pages.
        let mut sum = Sum::of_block(0);
        (0..HEADER_WORDS).for_each(|i| sum.mix(word(file, 8 * i)));
        if sum.0 != word(file, 8 * HEADER_WORDS) {
            return fail(8 * HEADER_WORDS, Wrong::HeaderChecksum);
        }
        if half(1, true) as usize != SLOT_BYTES {
            return fail(12, Wrong::SlotBytes(half(1, true)));
        }
        if (half(2, false) as usize, half(2, true)) != (PAGE_SIZE, PAGES_PER_HUGEPAGE) {
            return fail(16, Wrong::PageSize(half(2, false), half(2, true)));
        }
        match (8 * (HEADER_WORDS + 1)..BLOCK_BYTES).find(|at| file[*at] != 0) {
            Some(at) => fail(at, Wrong::HeaderChecksum),
            None => Ok(header),
        }
    }
}

impl<'a> Trace<'a> {
    /// # Errors
    /// The first in the file.
    pub fn read(file: &'a [u8]) -> Result<Self, TraceError> {
        let header = Header::decode(file)?;
        let (all, rest) = file[BLOCK_BYTES..].as_chunks::<BLOCK_BYTES>();
        let mut trace = Self {
            blocks: &[],
            header,
            events: 0,
            unchecked: 0,
            complete: false,
            dropped: 0,
            duration_us: 0,
            pages: Pages(0),
        };
        for (i, block) in all.iter().enumerate() {
            let seal = Seal::decode(slot(block, BLOCK_EVENTS));
            match seal {
                Some(seal) => trace.check_sealed(i, block, seal)?,
                None => trace.unchecked = trace.check_unsealed(i, block)?,
            }
            let events = seal.map_or(trace.unchecked, |seal| seal.events.into());
            trace.events += events;
            trace.blocks = &all[..i + usize::from(events > 0)];
            trace.complete = seal.is_some_and(|seal| seal.last);
            trace.dropped = seal.map_or(0, |seal| seal.dropped);
            if trace.complete || seal.is_none() {
                let behind = (i + 2) * BLOCK_BYTES;
                return match (file[behind..].iter().position(|byte| *byte != 0), rest.is_empty()) {
                    (Some(at), _) => Err(TraceError { at: (behind + at) as u64, wrong: Wrong::BehindTheEnd }),
                    (None, false) => Err(TraceError { at: file.len() as u64, wrong: Wrong::CutInside }),
                    (None, true) => Ok(trace),
                };
            }
        }
        let wrong = if rest.is_empty() { Wrong::CutBehind } else { Wrong::CutInside };
        Err(TraceError { at: file.len() as u64, wrong })
    }

    fn fail<T>(block: usize, slot: usize, wrong: Wrong) -> Result<T, TraceError> {
        Err(TraceError { at: ((block + 1) * BLOCK_BYTES + slot * SLOT_BYTES) as u64, wrong })
    }

    fn check_sealed(&mut self, i: usize, block: &[u8; BLOCK_BYTES], seal: Seal) -> Result<(), TraceError> {
        let events = usize::from(seal.events);
        let mut sum = Sum::of_block(i as u64 + 1);
        (0..events).for_each(|at| sum.add(slot(block, at)));
        let as_written = seal.encode(sum) == slot(block, BLOCK_EVENTS)
            && (events == BLOCK_EVENTS || seal.last)
            && (events..BLOCK_EVENTS).all(|at| slot(block, at) == [0, 0]);
        if !as_written {
            return Self::fail(i, BLOCK_EVENTS, Wrong::Checksum);
        }
        (0..events).try_for_each(|at| self.check_event(i, at, slot(block, at)))
    }

    fn check_unsealed(&mut self, i: usize, block: &[u8; BLOCK_BYTES]) -> Result<u64, TraceError> {
        // The second word after the last event may have been written.
        let events = (0..BLOCK_EVENTS).find(|at| slot(block, *at)[0] == 0).unwrap_or(BLOCK_EVENTS);
        (0..events).try_for_each(|at| self.check_event(i, at, slot(block, at)))?;
        let written = |at: &usize| match slot(block, *at) {
            [head, _] if *at == BLOCK_EVENTS => head != 0,
            words => words != [0, 0],
        };
        match (events + 1..=BLOCK_EVENTS).find(written) {
            Some(at) => Self::fail(i, at, Wrong::NoEvent),
            None => Ok(events as u64),
        }
    }

    fn check_event(&mut self, i: usize, at: usize, slot: Slot) -> Result<(), TraceError> {
        let Some(event) = Event::decode(slot) else {
            return Self::fail(i, at, Wrong::NoEvent);
        };
        let end = u64::from(event.span.first.0) + u64::from(event.span.len.0);
        if end > u64::from(self.header.region.0) {
            return Self::fail(i, at, Wrong::BeyondRegion(self.header.region));
        }
        if event.time_us < self.duration_us {
            return Self::fail(i, at, Wrong::BackInTime);
        }
        self.duration_us = event.time_us;
        self.pages = self.pages.max(Pages(end as u32));
        Ok(())
    }

    pub fn header(&self) -> Header {
        self.header
    }

    pub fn len(&self) -> u64 {
        self.events
    }

    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// The recorder was killed, or still runs.
    pub fn unchecked(&self) -> u64 {
        self.unchecked
    }

    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// `None`: the bound was reached and the recorder killed.
    pub fn dropped(&self) -> Option<u64> {
        (self.complete || self.events < self.header.bound).then_some(self.dropped)
    }

    pub fn duration_us(&self) -> u64 {
        self.duration_us
    }

    pub fn pages(&self) -> Pages {
        self.pages
    }

    pub fn events(&self) -> impl Iterator<Item = Event> + use<'a> {
        let blocks = self.blocks;
        blocks.iter().flat_map(|block| (0..BLOCK_EVENTS).map_while(|i| Event::decode(slot(block, i))))
    }
}
