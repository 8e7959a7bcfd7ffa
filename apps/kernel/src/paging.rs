//! Page tables of x86-64, four levels, built of frames as they are needed.
//!
//! **Threads.** One at a time changes tables; CPUs read them at any moment, so an entry is written
//! whole. The caller flushes translation caches after [`PageTables::unmap`], before any CPU reuses
//! the frames of tables that became empty: the guest changes tables while one CPU runs.
//! **Failure.** A refused call changes no translation.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

pub type Table = [AtomicU64; 512];

pub trait TableFrames {
    /// Its physical address; any contents.
    fn get(&self) -> Option<u64>;
    fn put(&self, address: u64);
    fn table(&self, address: u64) -> &Table;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    Frame,
    Huge,
    /// 1 GiB; not all CPUs have it.
    Giant,
}

impl Size {
    pub fn bytes(self) -> u64 {
        1 << (12 + 9 * self.level())
    }

    /// 0 is the last table.
    fn level(self) -> u32 {
        self as u32
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Misaligned {
        address: u64,
        size: Size,
    },
    Mapped {
        address: u64,
    },
    /// Or something of another size.
    NotMapped {
        address: u64,
    },
    NoFrames,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misaligned { address, size } => write!(f, "{address:#x} is no multiple of {} bytes", size.bytes()),
            Self::Mapped { address } => write!(f, "{address:#x} is mapped already"),
            Self::NotMapped { address } => write!(f, "nothing of this size is mapped at {address:#x}"),
            Self::NoFrames => write!(f, "no free frame for a page table"),
        }
    }
}

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
/// The entry maps memory itself.
const LEAF: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const TOP: u32 = 3;

pub struct PageTables<'f, F> {
    frames: &'f F,
    root: u64,
}

impl<'f, F: TableFrames> PageTables<'f, F> {
    pub fn new(frames: &'f F) -> Option<Self> {
        Some(Self { frames, root: empty(frames)? })
    }

    /// Physical address of the top table.
    pub fn root(&self) -> u64 {
        self.root
    }

    pub fn map(&self, at: u64, to: u64, size: Size) -> Result<(), Refused> {
        for address in [at, to] {
            if !address.is_multiple_of(size.bytes()) {
                return Err(Refused::Misaligned { address, size });
            }
        }
        let mut table = self.root;
        for level in (size.level() + 1..=TOP).rev() {
            let entry = self.entry(table, at, level);
            let found = entry.load(Ordering::Relaxed);
            table = match found & (PRESENT | LEAF) {
                0 => {
                    let Some(next) = empty(self.frames) else {
                        self.prune(at);
                        return Err(Refused::NoFrames);
                    };
                    // ORDERING: pairs with the processor's walk: cleared before it is linked.
                    entry.store(next | WRITABLE | PRESENT, Ordering::Release);
                    next
                }
                PRESENT => found & ADDRESS,
                _ => return Err(Refused::Mapped { address: at }),
            };
        }
        let entry = self.entry(table, at, size.level());
        if entry.load(Ordering::Relaxed) & PRESENT != 0 {
            return Err(Refused::Mapped { address: at });
        }
        let leaf = if size == Size::Frame { 0 } else { LEAF };
        // ORDERING: pairs with the processor's walk, which reads the entry once.
        entry.store(to | leaf | WRITABLE | PRESENT, Ordering::Release);
        Ok(())
    }

    /// Returns the physical address.
    pub fn unmap(&self, at: u64, size: Size) -> Result<u64, Refused> {
        let wrong = Refused::NotMapped { address: at };
        let (entry, found, level) = self.leaf(at).ok_or(wrong)?;
        if level != size.level() || !at.is_multiple_of(size.bytes()) {
            return Err(wrong);
        }
        // ORDERING: pairs with the processor's walk, which reads the entry once.
        entry.store(0, Ordering::Release);
        self.prune(at);
        Ok(found & ADDRESS & !(size.bytes() - 1))
    }

    pub fn translate(&self, at: u64) -> Option<u64> {
        let (_, found, level) = self.leaf(at)?;
        let inside = at & ((1 << (12 + 9 * level)) - 1);
        Some((found & ADDRESS & !((1 << (12 + 9 * level)) - 1)) | inside)
    }

    /// Mapped memory is the caller's.
    pub fn destroy(self) {
        self.destroy_table(self.root, TOP);
    }

    fn destroy_table(&self, table: u64, level: u32) {
        if level > 0 {
            for entry in self.frames.table(table) {
                let found = entry.load(Ordering::Relaxed);
                if found & (PRESENT | LEAF) == PRESENT {
                    self.destroy_table(found & ADDRESS, level - 1);
                }
            }
        }
        self.frames.put(table);
    }

    fn entry(&self, table: u64, at: u64, level: u32) -> &'f AtomicU64 {
        &self.frames.table(table)[(at >> (12 + 9 * level)) as usize % 512]
    }

    /// The entry that maps the address, its contents and its level.
    fn leaf(&self, at: u64) -> Option<(&'f AtomicU64, u64, u32)> {
        let mut table = self.root;
        for level in (0..=TOP).rev() {
            let entry = self.entry(table, at, level);
            let found = entry.load(Ordering::Relaxed);
            if found & PRESENT == 0 {
                return None;
            }
            if level == 0 || found & LEAF != 0 {
                return Some((entry, found, level));
            }
            table = found & ADDRESS;
        }
        None
    }

    /// The lowest first.
    fn prune(&self, at: u64) {
        while let Some((entry, table)) = self.empty_below(at) {
            // ORDERING: pairs with the processor's walk: unlinked before the table's frame is free.
            entry.store(0, Ordering::Release);
            self.frames.put(table);
        }
    }

    /// If it is empty; and the entry that names it.
    fn empty_below(&self, at: u64) -> Option<(&'f AtomicU64, u64)> {
        let (mut table, mut named_by) = (self.root, None);
        for level in (1..=TOP).rev() {
            let entry = self.entry(table, at, level);
            let found = entry.load(Ordering::Relaxed);
            if found & (PRESENT | LEAF) != PRESENT {
                break;
            }
            (table, named_by) = (found & ADDRESS, Some(entry));
        }
        let is_empty = self.frames.table(table).iter().all(|entry| entry.load(Ordering::Relaxed) == 0);
        named_by.filter(|_| is_empty).map(|entry| (entry, table))
    }
}

fn empty(frames: &impl TableFrames) -> Option<u64> {
    let address = frames.get()?;
    frames.table(address).iter().for_each(|entry| entry.store(0, Ordering::Relaxed));
    Some(address)
}

#[cfg(test)]
mod tests;
