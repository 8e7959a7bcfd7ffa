//! The table of huge objects: separate mappings.
//!
//! It remembers freed objects, to tell a double free from a foreign pointer.
//!
//! **State.** Open addressing with linear probing, at most half full, in a mapping that doubles.
//! Address 0 is empty; removal closes the gap behind it.
//!
//! **Unsafe.** Stores its entries in a mapping.

mod dense;
mod kept;
mod stretches;

pub use kept::Kept;
pub use stretches::Stretches;

use crate::misuse::Misuse;
use core::mem::offset_of;
use core::slice;
use craton_base::{Bytes, HUGEPAGE_SIZE, HugePageId, HugePages, Machine, Mappings, NoMemory, Pages};
use craton_pages::{Choice, Seen, Trust};
use dense::Cursor;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub at: usize,
    pub bytes: usize,
}

/// Such objects grow by moving page tables; the extra faults are few beside their size. glibc's
/// threshold ends here too.
pub const HUGE_MIN: usize = 32 << 20;

const FIRST_CAPACITY: usize = 256;

pub struct HugeTable {
    entries: *mut Entry,
    capacity: usize,
    len: usize,
    pub kept: Kept,
    pub stretches: Stretches,
    trust: Trust,
    cursor: Cursor,
    /// Freed or moved away last.
    gone: [Entry; REMEMBERED],
    oldest_gone: usize,
}

fn pages_of(entry: Entry) -> Pages {
    Bytes(entry.bytes).pages_up().unwrap_or(Pages(u32::MAX))
}

pub(crate) fn see_at(system: &impl Machine, entry: Entry, offset: usize) -> Seen {
    let bytes = HUGEPAGE_SIZE.min(entry.bytes - offset);
    Seen::of(system.resident(entry.at + offset, bytes), bytes)
}

/// Looks at the first and the middle hugepage.
pub(crate) fn see(system: &impl Machine, entry: Entry) -> Seen {
    let middle = entry.bytes / 2 / HUGEPAGE_SIZE * HUGEPAGE_SIZE;
    match see_at(system, entry, 0) {
        part @ (Seen::Sparse | Seen::Part) => part,
        first => match see_at(system, entry, middle) {
            Seen::Dense => first,
            middle => middle,
        },
    }
}

const REMEMBERED: usize = 32;

// SAFETY: the table owns its mapping.
unsafe impl Send for HugeTable {}

impl HugeTable {
    pub const SHAPE: [(&'static str, usize); 7] = [
        ("huge.entries", offset_of!(Self, entries)),
        ("huge.capacity", offset_of!(Self, capacity)),
        ("huge.len", offset_of!(Self, len)),
        ("huge.kept", offset_of!(Self, kept)),
        ("huge.entry.stride", size_of::<Entry>()),
        ("huge.entry.at", offset_of!(Entry, at)),
        ("huge.entry.bytes", offset_of!(Entry, bytes)),
    ];

    pub const EMPTY: Self = Self {
        entries: core::ptr::null_mut(),
        capacity: 0,
        len: 0,
        kept: Kept::NONE,
        stretches: Stretches::NONE,
        trust: Trust::NONE,
        cursor: Cursor::START,
        gone: [Entry { at: 0, bytes: 0 }; REMEMBERED],
        oldest_gone: 0,
    };

    fn entries(&self) -> &[Entry] {
        if self.capacity == 0 {
            return &[];
        }
        // SAFETY: `capacity` entries; zeros are empty ones.
        unsafe { slice::from_raw_parts(self.entries, self.capacity) }
    }

    fn entries_mut(&mut self) -> &mut [Entry] {
        if self.capacity == 0 {
            return &mut [];
        }
        // SAFETY: as above, and `&mut self` is exclusive.
        unsafe { slice::from_raw_parts_mut(self.entries, self.capacity) }
    }

    /// Addresses are multiples of 4 KiB.
    fn slot(&self, at: usize) -> usize {
        ((at >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) & (self.capacity - 1)
    }

    pub fn find(&self, at: usize) -> Option<Entry> {
        self.index_of(at).map(|i| self.entries()[i])
    }

    fn index_of(&self, at: usize) -> Option<usize> {
        if self.capacity == 0 || at == 0 {
            return None;
        }
        let entries = self.entries();
        let mut i = self.slot(at);
        while entries[i].at != 0 {
            if entries[i].at == at {
                return Some(i);
            }
            i = (i + 1) & (self.capacity - 1);
        }
        None
    }

    /// The address from which a mapping should have hugepages. A probe's first hugepage stays
    /// small.
    pub(crate) fn worth(&mut self, system: &impl Machine, entry: Entry) -> Option<usize> {
        self.review(system, entry);
        let pages = pages_of(entry);
        let choice = self.trust.decide(pages, HugePages(1));
        if choice != Choice::Huge && entry.at.is_multiple_of(HUGEPAGE_SIZE) {
            self.trust.left_small(pages, HugePageId((entry.at / HUGEPAGE_SIZE) as u32));
        }
        match choice {
            Choice::Small => None,
            Choice::Probe => Some(entry.at + HUGEPAGE_SIZE),
            Choice::Huge => Some(entry.at),
        }
    }

    pub(crate) fn is_dense(&self, pages: Pages) -> bool {
        self.trust.is_dense(pages)
    }

    /// Also looks at mappings of its length left on small pages.
    pub(crate) fn review(&mut self, system: &impl Machine, entry: Entry) {
        let mut trust = core::mem::replace(&mut self.trust, Trust::NONE);
        trust.review(pages_of(entry), |id| {
            let at = id.0 as usize * HUGEPAGE_SIZE;
            let known = if entry.at == at { Some(entry) } else { self.find(at) };
            known.map_or(Seen::Gone, |entry| see(system, entry))
        });
        self.trust = trust;
    }

    /// Scans the table.
    pub fn around(&self, at: usize) -> Option<Entry> {
        self.entries().iter().copied().find(|e| e.at != 0 && at >= e.at && at - e.at < e.bytes)
    }

    pub fn note_gone(&mut self, entry: Entry) {
        let again = self.gone.iter_mut().find(|gone| gone.at == entry.at);
        match again {
            Some(gone) => *gone = entry,
            None => {
                self.gone[self.oldest_gone] = entry;
                self.oldest_gone = (self.oldest_gone + 1) % REMEMBERED;
            }
        }
    }

    pub fn misuse(&self, at: usize) -> Misuse {
        let mut around = self.gone.iter().filter(|gone| at >= gone.at && at - gone.at < gone.bytes).peekable();
        if around.peek().is_none() {
            return Misuse::Foreign;
        }
        around.find(|gone| gone.at == at).map_or(Misuse::Unallocated, |gone| Misuse::Freed { size: gone.bytes })
    }

    /// After it the next `insert` cannot fail.
    pub fn prepare(&mut self, system: &impl Mappings) -> Result<(), NoMemory> {
        if (self.len + 1) * 2 <= self.capacity {
            return Ok(());
        }
        let capacity = (self.capacity * 2).max(FIRST_CAPACITY);
        let entries = system.map(capacity * size_of::<Entry>(), 1).ok_or(NoMemory)? as *mut Entry;
        let old = Self { entries: self.entries, capacity: self.capacity, ..Self::EMPTY };
        (self.entries, self.capacity, self.len) = (entries, capacity, 0);
        old.entries().iter().filter(|e| e.at != 0).for_each(|e| self.insert(*e));
        if old.capacity > 0 {
            system.unmap(old.entries as usize, old.capacity * size_of::<Entry>());
        }
        Ok(())
    }

    #[allow(clippy::len_without_is_empty)] // Unused.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Needs `prepare`.
    pub fn insert(&mut self, entry: Entry) {
        let mask = self.capacity - 1;
        let mut i = self.slot(entry.at);
        let entries = self.entries_mut();
        while entries[i].at != 0 {
            i = (i + 1) & mask;
        }
        entries[i] = entry;
        self.len += 1;
    }

    pub fn remove(&mut self, at: usize) -> Option<Entry> {
        let mut gap = self.index_of(at)?;
        let mask = self.capacity - 1;
        let found = self.entries()[gap];
        let mut i = gap;
        loop {
            i = (i + 1) & mask;
            let e = self.entries()[i];
            if e.at == 0 {
                break;
            }
            // An entry may move if its probe starts at or before the gap.
            let from = self.slot(e.at);
            if (i.wrapping_sub(from) & mask) >= (i.wrapping_sub(gap) & mask) {
                self.entries_mut()[gap] = e;
                gap = i;
            }
        }
        self.entries_mut()[gap] = Entry { at: 0, bytes: 0 };
        self.len -= 1;
        Some(found)
    }
}
