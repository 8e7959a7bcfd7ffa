//! Which frames the zone manages, and where its metadata lies.
//!
//! **State.** Frame 0 is the first usable byte rounded down to a GiB, so that pages of a GiB are
//! aligned. The metadata, each array at a cache line:
//! ```text
//! | rows | children | trees | index | locals |
//! ```

use crate::memory::{FRAME, Map, Range, Wrong};
use core::fmt;
use craton_frames::{Local, Sizes, Standard};

const GIB: u64 = 1 << 30;
const LINE: u64 = 64;
/// Less cannot hold the checks: their lists, and one huge frame.
pub const LEAST_FRAMES: usize = 4096;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Physical, of frame 0.
    pub base: u64,
    /// Holes too.
    pub frames: usize,
    pub sizes: Sizes,
    pub metadata: Range,
    pub free: Map,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Map(Wrong),
    TooLittle {
        frames: usize,
    },
    /// No range holds the metadata.
    NoRoom {
        bytes: u64,
    },
}

impl From<Wrong> for Refused {
    fn from(wrong: Wrong) -> Self {
        Self::Map(wrong)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(wrong) => wrong.fmt(f),
            Self::TooLittle { frames } => {
                write!(f, "{} KiB of usable memory are too little: give the guest at least ", *frames * 4)?;
                write!(f, "{} MiB (-m)", LEAST_FRAMES as u64 * FRAME / (1 << 20) + 8)
            }
            Self::NoRoom { bytes } => {
                write!(
                    f,
                    "no range of usable memory has {bytes} contiguous bytes for the metadata; give the guest more (-m)"
                )
            }
        }
    }
}

impl Plan {
    pub fn new(usable: &Map, cpus: usize) -> Result<Self, Refused> {
        let (Some(first), Some(last)) = (usable.ranges().first(), usable.ranges().last()) else {
            return Err(Refused::TooLittle { frames: 0 });
        };
        if usable.frames() < LEAST_FRAMES {
            return Err(Refused::TooLittle { frames: usable.frames() });
        }
        let base = first.begin / GIB * GIB;
        let frames = ((last.end - base) / FRAME) as usize;
        let sizes = Sizes::of::<Standard>(frames, cpus);
        let bytes = Offsets::of(&sizes).end.next_multiple_of(FRAME);
        let home = usable.ranges().iter().max_by_key(|range| range.bytes()).filter(|range| range.bytes() > bytes);
        let home = home.ok_or(Refused::NoRoom { bytes })?;
        let metadata = Range { begin: home.begin, end: home.begin + bytes };
        Ok(Self { base, frames, sizes, metadata, free: usable.except(metadata)? })
    }

    pub fn frame_of(&self, address: u64) -> usize {
        ((address - self.base) / FRAME) as usize
    }

    pub fn address_of(&self, frame: usize) -> u64 {
        self.base + frame as u64 * FRAME
    }
}

/// In the metadata's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offsets {
    pub rows: u64,
    pub children: u64,
    pub trees: u64,
    pub index: u64,
    pub locals: u64,
    pub end: u64,
}

impl Offsets {
    pub fn of(sizes: &Sizes) -> Self {
        let next = |at: u64, elements: usize, bytes: usize| (at + (elements * bytes) as u64).next_multiple_of(LINE);
        let rows = 0;
        let children = next(rows, sizes.rows, 8);
        let trees = next(children, sizes.children, 4);
        let index = next(trees, sizes.trees, 2);
        let locals = next(index, sizes.index, 8).next_multiple_of(align_of::<Local>() as u64);
        let end = next(locals, sizes.locals, size_of::<Local>());
        Self { rows, children, trees, index, locals, end }
    }
}

#[cfg(test)]
mod tests;
