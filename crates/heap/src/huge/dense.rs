//! The search for densely used hugepages of mappings that lie on small pages, for the collapses of
//! a round.

use super::{Entry, HugeTable, see_at};
use craton_base::{HUGEPAGE_SIZE, Machine};
use craton_pages::Seen;

/// Hugepages looked at in a search, and those that one call can find whole.
const LOOKS: usize = 128;
const CHUNK: usize = 32 * HUGEPAGE_SIZE;

pub(super) struct Cursor {
    slot: usize,
    offset: usize,
}

impl Cursor {
    pub(super) const START: Self = Self { slot: 0, offset: 0 };
}

impl HugeTable {
    /// The mapping may be gone when the collapse starts.
    pub(crate) fn next_dense(&mut self, system: &impl Machine) -> Option<(Entry, usize)> {
        let (mut looks, mut slots) = (LOOKS, self.capacity);
        while looks > 0 && slots > 0 {
            let Cursor { slot, offset } = self.cursor;
            let entry = self.entries()[slot % self.capacity];
            let whole = entry.bytes / HUGEPAGE_SIZE * HUGEPAGE_SIZE;
            if entry.at == 0 || !entry.at.is_multiple_of(HUGEPAGE_SIZE) || offset >= whole {
                self.cursor = Cursor { slot: (slot + 1) % self.capacity, offset: 0 };
                slots -= 1;
                continue;
            }
            let (at, chunk) = (entry.at + offset, CHUNK.min(whole - offset));
            if offset.is_multiple_of(CHUNK) && system.huge(at, chunk).is_none_or(|huge| huge == chunk) {
                self.cursor.offset += chunk;
                looks -= 1;
                continue;
            }
            self.cursor.offset += HUGEPAGE_SIZE;
            looks -= 1;
            if see_at(system, entry, offset) == Seen::Dense && system.huge(at, HUGEPAGE_SIZE) == Some(0) {
                return Some((entry, at));
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
