//! Address space for sparse objects, mapped in long stretches and reused.
//!
//! A mapping for each object would cost two system calls and its page tables. A free releases the
//! memory at once; the addresses stay for the next object.
//!
//! **Invariants.** No part of a stretch is unmapped alone, so that the system cannot map others
//! there. Empty stretches are unmapped, except one of [`FIRST`] hugepages.

use crate::huge::Entry;
use craton_base::{HUGEPAGE_SIZE, HugePages, Mappings, PageBits};

const FIRST: u32 = 32;
const LONGEST: u32 = 256;
/// Further objects have separate mappings.
const MOST: usize = 128;

#[derive(Clone, Copy)]
struct Stretch {
    /// 0: no stretch.
    at: usize,
    /// The hugepages of objects, and those behind the end.
    taken: PageBits,
    len: u32,
    used: u32,
}

impl Stretch {
    const NONE: Self = Self { at: 0, taken: PageBits::EMPTY, len: 0, used: 0 };

    fn holds(&self, at: usize) -> bool {
        at.wrapping_sub(self.at) < self.len as usize * HUGEPAGE_SIZE
    }

    fn place(&self, at: usize) -> u32 {
        ((at - self.at) / HUGEPAGE_SIZE) as u32
    }

    /// `len` hugepages.
    fn take(&mut self, len: u32) -> Option<usize> {
        if self.len - self.used < len {
            return None;
        }
        let (first, _) = self.taken.clear_runs().find(|(_, run)| *run >= len)?;
        self.taken.insert(first, len);
        self.used += len;
        Some(self.at + first as usize * HUGEPAGE_SIZE)
    }
}

pub struct Stretches {
    stretches: [Stretch; MOST],
    /// One past the last stretch in use.
    end: usize,
    /// Where the last object was found.
    last: usize,
}

fn hugepages(bytes: usize) -> u32 {
    (bytes / HUGEPAGE_SIZE) as u32
}

impl Stretches {
    pub const NONE: Self = Self { stretches: [Stretch::NONE; MOST], end: 0, last: 0 };

    fn of(&mut self, at: usize) -> Option<&mut Stretch> {
        self.stretches[..self.end].iter_mut().find(|stretch| stretch.holds(at))
    }

    pub fn hold(&self, at: usize) -> bool {
        self.stretches[..self.end].iter().any(|stretch| stretch.holds(at))
    }

    /// The hugepages read as zeros.
    pub fn take(&mut self, system: &impl Mappings, len: HugePages) -> Option<usize> {
        let HugePages(len) = len;
        let found = self.stretches[self.last].take(len);
        if found.is_some() {
            return found;
        }
        for (i, stretch) in self.stretches[..self.end].iter_mut().enumerate() {
            if let Some(at) = stretch.take(len) {
                self.last = i;
                return Some(at);
            }
        }
        self.last = self.add(system, len)?;
        self.stretches[self.last].take(len)
    }

    fn add(&mut self, system: &impl Mappings, least: u32) -> Option<usize> {
        let free = self.stretches.iter().position(|stretch| stretch.at == 0)?;
        let all = self.stretches[..self.end].iter().map(|stretch| stretch.len).sum::<u32>();
        let len = all.clamp(FIRST, LONGEST);
        if len < least {
            return None;
        }
        let at = system.reserve(len as usize * HUGEPAGE_SIZE)?;
        let mut taken = PageBits::EMPTY;
        taken.insert(len, LONGEST - len);
        self.stretches[free] = Stretch { at, taken, len, used: 0 };
        self.end = self.end.max(free + 1);
        Some(free)
    }

    /// `false`: the space behind it is not free.
    pub fn lengthen(&mut self, entry: Entry, bytes: usize) -> bool {
        let Some(stretch) = self.of(entry.at) else { return false };
        let (first, more) = (stretch.place(entry.at) + hugepages(entry.bytes), hugepages(bytes - entry.bytes));
        if first + more > stretch.len || stretch.taken.any(first, more) {
            return false;
        }
        stretch.taken.insert(first, more);
        stretch.used += more;
        true
    }

    /// Needs zeroed memory. Returns an empty stretch to unmap.
    pub fn give(&mut self, entry: Entry) -> Option<Entry> {
        let stretch = self.of(entry.at)?;
        let (first, len) = (stretch.place(entry.at), hugepages(entry.bytes));
        stretch.taken.remove(first, len);
        stretch.used -= len;
        if stretch.used > 0 {
            return None;
        }
        let empty = Entry { at: stretch.at, bytes: stretch.len as usize * HUGEPAGE_SIZE };
        let is_spare = |other: &Stretch| other.at != 0 && other.at != empty.at && other.used == 0;
        if stretch.len == FIRST && !self.stretches[..self.end].iter().any(is_spare) {
            return None;
        }
        if let Some(stretch) = self.of(entry.at) {
            *stretch = Stretch::NONE;
        }
        while self.end > 0 && self.stretches[self.end - 1].at == 0 {
            self.end -= 1;
        }
        Some(empty)
    }

    #[cfg(test)]
    pub fn free_bytes(&self) -> usize {
        self.stretches.iter().map(|stretch| (stretch.len - stretch.used) as usize * HUGEPAGE_SIZE).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
