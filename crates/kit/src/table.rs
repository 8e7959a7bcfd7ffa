//! The records of buffers, by address.
//!
//! Sixteen parts, each an open-addressing table. A lookup misses cache and TLB, a quarter of a
//! microsecond: so parts lie on hugepages from 2 MiB on, and callers prefetch
//! ([`Table::prefetch`]).
//!
//! **Unsafe.** Keeps entries in mappings; zeros are free places.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use craton_base::HUGEPAGE_SIZE;
use craton_os::{Mutex, Rank, mapping};

/// Zeros are a free place.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Buffer {
    pub address: usize,
    pub size: usize,
    /// Where the heap's object, or the pages, begin.
    pub(crate) under: usize,
    pub(crate) checks: u16,
    pub(crate) state: State,
    pub(crate) kind: Kind,
    pub(crate) align: u8,
    /// 0: not checked.
    pub(crate) family: u8,
    /// The [`super::Target`]'s number.
    pub(crate) target: u16,
    pub(crate) taken: Event,
    pub(crate) given: Event,
}

const _: () = assert!(size_of::<Buffer>() == 64);

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) stack: u32,
    pub(crate) thread: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum State {
    #[default]
    Live,
    Freeing,
    Freed,
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Kind {
    #[default]
    Heap,
    Slot,
    Mapped,
}

pub(crate) enum Then {
    Keep,
    Remove,
}

const PARTS: usize = 16;
const FIRST: usize = 64;

struct Part {
    at: *mut Buffer,
    /// A power of two, or 0.
    places: usize,
    used: usize,
}

// SAFETY: it owns its entries.
unsafe impl Send for Part {}

pub(crate) struct Table {
    parts: [Mutex<Part>; PARTS],
    /// Each part's entries, and the last one's number.
    hints: [[AtomicUsize; 2]; PARTS],
    huge: AtomicBool,
}

pub(crate) const PARTS_AT: usize = offset_of!(Table, parts);
/// For `craton core`.
pub(crate) const SHAPE: [(&str, usize); 5] = [
    ("kit.table.parts", PARTS),
    ("kit.part.bytes", size_of::<Mutex<Part>>()),
    ("kit.part.lock", Mutex::<Part>::SHAPE[0]),
    ("kit.part.at", Mutex::<Part>::SHAPE[1] + offset_of!(Part, at)),
    ("kit.part.places", Mutex::<Part>::SHAPE[1] + offset_of!(Part, places)),
];

/// Buffers are at least 16 bytes apart.
fn hash(address: usize) -> u64 {
    (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn part_of(address: usize) -> usize {
    (hash(address) >> 60) as usize % PARTS
}

fn home(address: usize, mask: usize) -> usize {
    (hash(address) >> 20) as usize & mask
}

impl Part {
    fn each(&self, visit: &mut impl FnMut(&Buffer)) {
        for i in 0..self.places {
            // SAFETY: a place of the table.
            let buffer = unsafe { &*self.entry(i) };
            if buffer.address != 0 {
                visit(buffer);
            }
        }
    }

    fn home(&self, address: usize) -> usize {
        home(address, self.places - 1)
    }

    fn entry(&self, i: usize) -> *mut Buffer {
        self.at.wrapping_add(i)
    }

    /// Returns the empty place where the address belongs if it has no record.
    fn find(&self, address: usize) -> usize {
        let mut i = self.home(address);
        loop {
            // SAFETY: `i` is below `places`. At most two thirds are used, so the loop ends.
            let there = unsafe { (*self.entry(i)).address };
            if there == address || there == 0 {
                return i;
            }
            i = (i + 1) & (self.places - 1);
        }
    }

    fn grow_for_one(&mut self, on_hugepages: bool) -> bool {
        if 3 * (self.used + 1) <= 2 * self.places {
            return true;
        }
        let places = (2 * self.places).max(FIRST);
        let bytes = places * size_of::<Buffer>();
        let huge = bytes >= HUGEPAGE_SIZE && on_hugepages;
        let Some(at) = mapping::map(bytes, if huge { HUGEPAGE_SIZE } else { 1 }) else { return false };
        if huge {
            mapping::advise_huge(at, bytes);
        }
        let old = core::mem::replace(self, Part { at: at as *mut Buffer, places, used: self.used });
        for i in 0..old.places {
            // SAFETY: `i` is below the old length; `find` gives a place of the new table.
            unsafe {
                let buffer = old.entry(i).read();
                if buffer.address != 0 {
                    self.entry(self.find(buffer.address)).write(buffer);
                }
            }
        }
        if old.places > 0 {
            mapping::unmap(old.at as usize, old.places * size_of::<Buffer>());
        }
        true
    }

    fn remove(&mut self, mut hole: usize) {
        let mask = self.places - 1;
        let mut i = hole;
        loop {
            i = (i + 1) & mask;
            // SAFETY: below `places`.
            let buffer = unsafe { self.entry(i).read() };
            if buffer.address == 0 {
                break;
            }
            // It may move to the hole unless that is before its home.
            if (i.wrapping_sub(self.home(buffer.address)) & mask) >= (i.wrapping_sub(hole) & mask) {
                // SAFETY: as above.
                unsafe { self.entry(hole).write(buffer) };
                hole = i;
            }
        }
        // SAFETY: as above.
        unsafe { self.entry(hole).write(Buffer::default()) };
        self.used -= 1;
    }
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            parts: [const { Mutex::ranked(Rank::KitTable, Part { at: core::ptr::null_mut(), places: 0, used: 0 }) };
                PARTS],
            hints: [const { [const { AtomicUsize::new(0) }; 2] }; PARTS],
            huge: AtomicBool::new(false),
        }
    }

    /// Takes effect at large parts' next growth.
    pub(crate) fn set_huge(&self, ask: bool) {
        self.huge.store(ask, Relaxed);
    }

    fn part(&self, address: usize) -> &Mutex<Part> {
        &self.parts[part_of(address)]
    }

    /// `false`: no memory, or the address has a record.
    pub(crate) fn insert(&self, buffer: Buffer) -> bool {
        let mut part = self.part(buffer.address).lock();
        let places = part.places;
        if !part.grow_for_one(self.huge.load(Relaxed)) {
            return false;
        }
        if part.places != places {
            let hint = &self.hints[part_of(buffer.address)];
            hint[0].store(part.at as usize, Relaxed);
            hint[1].store(part.places - 1, Relaxed);
        }
        let i = part.find(buffer.address);
        // SAFETY: `find` returns a place.
        unsafe {
            if (*part.entry(i)).address != 0 {
                return false;
            }
            part.entry(i).write(buffer);
        }
        part.used += 1;
        true
    }

    /// `visit` may change or remove the record, but takes no memory and no other lock.
    pub(crate) fn with<R>(&self, address: usize, visit: impl FnOnce(&mut Buffer) -> (R, Then)) -> Option<R> {
        let mut part = self.part(address).lock();
        if part.places == 0 {
            return None;
        }
        let i = part.find(address);
        // SAFETY: `find` returns a place.
        let buffer = unsafe { &mut *part.entry(i) };
        if buffer.address == 0 {
            return None;
        }
        let (result, then) = visit(buffer);
        if matches!(then, Then::Remove) {
            part.remove(i);
        }
        Some(result)
    }

    /// The address's record, and the memory there.
    pub(crate) fn prefetch(&self, address: usize) {
        // Without the lock: an address of the old table does no harm.
        let hint = &self.hints[part_of(address)];
        fetch(hint[0].load(Relaxed) + home(address, hint[1].load(Relaxed)) * size_of::<Buffer>());
        fetch(address.wrapping_sub(1));
        fetch(address);
    }

    pub(crate) fn get(&self, address: usize) -> Option<Buffer> {
        self.with(address, |buffer| (*buffer, Then::Keep))
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&Buffer)) {
        self.parts.iter().for_each(|part| part.lock().each(&mut visit));
    }

    pub(crate) fn find_where(&self, holds: impl Fn(&Buffer) -> bool) -> Option<Buffer> {
        let mut found = None;
        self.each(|b| {
            if holds(b) {
                found = Some(*b);
            }
        });
        found
    }

    pub(crate) fn each_in_copy(&self, mut visit: impl FnMut(&Buffer)) {
        for part in &self.parts {
            // SAFETY: the copy's one thread holds no lock through a guard.
            unsafe { part.held_for_fork() }.each(&mut visit);
        }
    }

    /// In a forked copy.
    pub(crate) fn ranges(&self, each: &mut impl FnMut(usize, usize)) {
        for part in &self.parts {
            // SAFETY: as in `each_in_copy`.
            let part = unsafe { part.held_for_fork() };
            each(part.at as usize, part.places * size_of::<Buffer>());
        }
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.parts.iter().for_each(|part| part.lock_for_fork(nested));
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        self.parts.iter().rev().for_each(|part| unsafe { part.release_after_fork() });
    }
}

#[inline(always)]
fn fetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint never fails.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(all(test, not(loom)))]
mod tests;
