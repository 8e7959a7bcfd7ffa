//! The log of the last transactions with buffers (Bonwick94 §6.1): a ring of entries, half a cache
//! line each.
//! ```text
//! | time (8) | address (8) | size (8) | stack (4) | thread and action (4) |
//! ```
//! **Threads.** A writer stores the time last, and 0 meanwhile: readers skip unfinished entries.
//!
//! **Unsafe.** Declares that zeros are a valid entry.

use core::mem::offset_of;
use craton_base::atomic::{AtomicU32, AtomicU64, Ordering};
use craton_base::{Table, Zeroed};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Action {
    Alloc = 1,
    Free = 2,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transaction {
    pub time_ns: u64,
    pub address: usize,
    pub size: usize,
    pub stack: u32,
    pub thread: u32,
    pub action: Action,
}

#[derive(Default, Debug)]
#[repr(C, align(32))]
pub struct Entry {
    time: AtomicU64,
    address: AtomicU64,
    size: AtomicU64,
    stack: AtomicU32,
    who: AtomicU32,
}

// SAFETY: atomics of zero are valid.
unsafe impl Zeroed for Entry {}

/// Above thread numbers (the kernel's limit is 2²²).
const ACTION_SHIFT: u32 = 30;

pub struct Log {
    entries: Table<Entry>,
    len: usize,
    next: AtomicU64,
}

impl Log {
    /// For readers of another process.
    pub const SHAPE: [(&'static str, usize); 10] = [
        ("log.entries", offset_of!(Self, entries) + Table::<Entry>::SHAPE[0]),
        ("log.len", offset_of!(Self, len)),
        ("log.next", offset_of!(Self, next)),
        ("log.entry.bytes", size_of::<Entry>()),
        ("log.entry.time", offset_of!(Entry, time)),
        ("log.entry.address", offset_of!(Entry, address)),
        ("log.entry.size", offset_of!(Entry, size)),
        ("log.entry.stack", offset_of!(Entry, stack)),
        ("log.entry.who", offset_of!(Entry, who)),
        ("log.action.shift", ACTION_SHIFT as usize),
    ];

    #[allow(clippy::declare_interior_mutable_const)] // A value to begin with: every use of it is a new log.
    pub const EMPTY: Self = Self { entries: Table::EMPTY, len: 0, next: AtomicU64::new(0) };

    pub const fn new(entries: Table<Entry>, len: usize) -> Self {
        Self { entries, len, next: AtomicU64::new(0) }
    }

    pub fn add(&self, what: Transaction) {
        if self.len == 0 {
            return;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = &self.entries[(number % self.len as u64) as usize];
        entry.time.store(0, Ordering::Relaxed);
        // ORDERING: pairs with the Acquire of `time` in `each`: a new word implies no time.
        entry.address.store(what.address as u64, Ordering::Release);
        // ORDERING: as above.
        entry.size.store(what.size as u64, Ordering::Release);
        // ORDERING: as above.
        entry.stack.store(what.stack, Ordering::Release);
        // ORDERING: as above.
        entry.who.store(what.thread | (what.action as u32) << ACTION_SHIFT, Ordering::Release);
        // ORDERING: pairs with the Acquire in `each`: who sees the time sees the rest.
        entry.time.store(what.time_ns.max(1), Ordering::Release);
    }

    pub fn address(&self) -> usize {
        if self.len == 0 { 0 } else { &raw const self.entries[0] as usize }
    }

    pub fn count(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub fn kept(&self) -> u64 {
        self.count().min(self.len as u64)
    }

    /// Newest first, until `false`.
    pub fn each(&self, mut tell: impl FnMut(Transaction) -> bool) {
        let end = self.count();
        for number in (end - self.kept()..end).rev() {
            let entry = &self.entries[(number % self.len as u64) as usize];
            // ORDERING: pairs with the Release in `add`.
            let time_ns = entry.time.load(Ordering::Acquire);
            // ORDERING: pairs with `add`'s Releases: the second `time` detects newer words.
            let (address, size) = (entry.address.load(Ordering::Acquire), entry.size.load(Ordering::Acquire));
            // ORDERING: as above.
            let (stack, who) = (entry.stack.load(Ordering::Acquire), entry.who.load(Ordering::Acquire));
            if time_ns == 0 || entry.time.load(Ordering::Relaxed) != time_ns {
                continue;
            }
            let action = if who >> ACTION_SHIFT == Action::Alloc as u32 { Action::Alloc } else { Action::Free };
            let thread = who & ((1 << ACTION_SHIFT) - 1);
            let (address, size) = (address as usize, size as usize);
            if !tell(Transaction { time_ns, address, size, stack, thread, action }) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
