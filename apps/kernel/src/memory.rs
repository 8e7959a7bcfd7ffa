//! The machine's memory map (PVH), cleaned: sorted ranges of whole usable frames that do not
//! overlap. Bytes that any range has as unusable are so.

use core::fmt;

pub const FRAME: u64 = 4096;
pub const MOST: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given {
    pub begin: u64,
    pub bytes: u64,
    pub is_usable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    pub begin: u64,
    pub end: u64,
}

impl Range {
    pub fn frames(&self) -> usize {
        ((self.end - self.begin) / FRAME) as usize
    }

    pub fn bytes(&self) -> u64 {
        self.end - self.begin
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    TooMany,
    Wraps(u64),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "the memory map has more than {MOST} ranges of one kind; raise MOST"),
            Self::Wraps(begin) => write!(f, "the memory map has a range at {begin:#x} that ends above 2^64"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    ranges: [Range; MOST],
    len: usize,
}

impl Map {
    const EMPTY: Self = Self { ranges: [Range { begin: 0, end: 0 }; MOST], len: 0 };

    /// Without frames that `taken` ranges touch.
    pub fn new(given: impl Iterator<Item = Given>, taken: &[Range]) -> Result<Self, Wrong> {
        let (mut usable, mut reserved) = (Self::EMPTY, Self::EMPTY);
        for Given { begin, bytes, is_usable } in given {
            let end = begin.checked_add(bytes).ok_or(Wrong::Wraps(begin))?;
            if begin == end {
                continue;
            }
            let of = if is_usable { &mut usable } else { &mut reserved };
            of.push(Range { begin, end })?;
        }
        for range in taken {
            reserved.push(*range)?;
        }
        usable.sort_and_join();
        reserved.sort_and_join();
        usable.without(&reserved)
    }

    pub fn ranges(&self) -> &[Range] {
        &self.ranges[..self.len]
    }

    pub fn frames(&self) -> usize {
        self.ranges().iter().map(Range::frames).sum()
    }

    pub fn except(&self, taken: Range) -> Result<Self, Wrong> {
        let mut reserved = Self::EMPTY;
        reserved.push(taken)?;
        self.without(&reserved)
    }

    fn push(&mut self, range: Range) -> Result<(), Wrong> {
        *self.ranges.get_mut(self.len).ok_or(Wrong::TooMany)? = range;
        self.len += 1;
        Ok(())
    }

    fn sort_and_join(&mut self) {
        self.ranges[..self.len].sort_unstable_by_key(|range| range.begin);
        let mut kept = 0;
        for at in 1..self.len {
            let next = self.ranges[at];
            let last = &mut self.ranges[kept];
            if next.begin <= last.end {
                last.end = last.end.max(next.end);
            } else {
                kept += 1;
                self.ranges[kept] = next;
            }
        }
        self.len = self.len.min(kept + 1);
    }

    /// Both are sorted and joined.
    fn without(&self, reserved: &Self) -> Result<Self, Wrong> {
        let mut left = Self::EMPTY;
        for range in self.ranges() {
            let mut at = range.begin;
            for hole in reserved.ranges().iter().filter(|hole| hole.end > range.begin && hole.begin < range.end) {
                left.push_frames(at, hole.begin)?;
                at = at.max(hole.end);
            }
            left.push_frames(at, range.end)?;
        }
        Ok(left)
    }

    fn push_frames(&mut self, begin: u64, end: u64) -> Result<(), Wrong> {
        let (Some(begin), end) = (begin.checked_next_multiple_of(FRAME), end / FRAME * FRAME) else { return Ok(()) };
        if begin < end { self.push(Range { begin, end }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
