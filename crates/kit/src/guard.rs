//! Pages for single buffers.
//!
//! A small buffer gets a slot of the arena, with three closed pages on both sides; a larger one a
//! mapping with a closed page at each end. Freed pages are reused in FIFO order.
//!
//! An advice makes each slot one mapping (VMA): opening or closing needs no split and merge (3.6 µs
//! a pair against 7.9). A fork copies all these, tens of milliseconds: from a process's first fork
//! on, marks in the page table close pages ([`guarded::shut`], Linux 6.13; 8 µs a pair against 4.4,
//! since closed pages lose their memory), and the VMAs merge, except slots that were open.
//!
//! **Unsafe.** Keeps the ring in a mapping.

use crate::area::Area;
use crate::sample::{MOST_OUT, PACED_MAPPED, PACED_OUT};
use crate::setting::SAMPLED;
use crate::table::{Buffer, Kind};
use core::mem::offset_of;
use craton_os::{Line, Mutex, Rank, guarded, mapping, process};

const SLOTS: usize = 1 << 15;
const STRIDE: usize = 4;
const ARENA: usize = STRIDE * (SLOTS + 1) - 1;
/// Slots that join the arena's one mapping at a time.
const STEP: usize = 512;
/// Mappings of the program and the rest of the library.
const OTHERS: usize = 16 << 10;

#[derive(Clone, Copy)]
struct Waiting {
    slot: u32,
    is_open: bool,
    buffer: usize,
}

struct Pages {
    arena: usize,
    page: usize,
    fresh: usize,
    /// Freed slots: from `first`, `waiting` of them.
    ring: *mut Waiting,
    first: usize,
    waiting: usize,
    /// For all slots ever used: a power of two.
    places: usize,
    most_slots: usize,
    mapped: usize,
    most_mapped: usize,
    /// 0: free place.
    mapped_samples: [usize; PACED_MAPPED],
    unmarked: usize,
    ready: usize,
    marked: bool,
    reported: bool,
}

// SAFETY: it owns the ring.
unsafe impl Send for Pages {}

pub(crate) struct Guards(Mutex<Pages>);

const STATE: usize = Mutex::<Pages>::SHAPE[1];
pub(crate) const SHAPE: [(&str, usize); 5] = [
    ("kit.guard.arena", STATE + offset_of!(Pages, arena)),
    ("kit.guard.page", STATE + offset_of!(Pages, page)),
    ("kit.guard.pages", ARENA),
    ("kit.guard.ring", STATE + offset_of!(Pages, ring)),
    ("kit.guard.ring.bytes", SLOTS * size_of::<Waiting>()),
];

impl Pages {
    fn set_up(&mut self) -> bool {
        if self.arena == 0 {
            self.page = process::page_size();
            // A slot is two mappings, a mapped buffer up to three.
            let mappings = guarded::most_mappings().saturating_sub(OTHERS);
            (self.unmarked, self.places) = (SLOTS, PACED_OUT);
            (self.most_slots, self.most_mapped) = ((mappings * 3 / 8).min(SLOTS), mappings / 12);
            let ring = mapping::map(SLOTS * size_of::<Waiting>(), 1);
            let arena = guarded::reserve(ARENA * self.page);
            (self.arena, self.ring) = match (arena, ring) {
                (Some(arena), Some(ring)) => (arena, ring as *mut _),
                _ => (usize::MAX, core::ptr::null_mut()),
            };
        }
        self.arena != usize::MAX
    }

    fn slot_at(&self, slot: u32) -> usize {
        self.arena + (STRIDE * (slot as usize + 1) - 1) * self.page
    }

    fn open(&self, slot: u32) -> bool {
        let at = self.slot_at(slot);
        // A slot that waited before there were marks is closed by a mapping.
        let has_mapping = (slot as usize) < self.unmarked;
        (!self.marked || guarded::unshut(at, self.page)) && (!has_mapping || guarded::open(at, self.page))
    }

    fn mark(&mut self) {
        if self.marked || self.fresh == 0 || !guarded::shut(self.arena, self.page) {
            return;
        }
        if self.closed_runs(guarded::renew_shut) {
            (self.marked, self.ready, self.unmarked) = (true, self.fresh, self.fresh);
            self.unmarked = SLOTS;
            (self.most_slots, self.most_mapped) = (SLOTS, 4 * self.most_mapped);
        } else {
            // A slot that is opened by its mapping must have no mark.
            self.closed_runs(|at, bytes| guarded::close(at, bytes) && guarded::unshut(at, bytes));
        }
    }

    /// Visits runs between open slots until `false`.
    fn closed_runs(&self, mut each: impl FnMut(usize, usize) -> bool) -> bool {
        let mut closed = [0u64; SLOTS / 64];
        for i in 0..self.waiting {
            // SAFETY: as in `alloc_slot`.
            let Waiting { slot, is_open, .. } = unsafe { self.ring.add((self.first + i) % self.places).read() };
            closed[slot as usize / 64] |= u64::from(!is_open) << (slot % 64);
        }
        let mut from = self.arena;
        for slot in (0..self.fresh).filter(|slot| closed[slot / 64] >> (slot % 64) & 1 == 0) {
            let at = self.slot_at(slot as u32);
            if !each(from, at - from) {
                return false;
            }
            from = at + self.page;
        }
        each(from, self.slot_at(self.fresh as u32) - from)
    }

    fn make_ready(&mut self) -> bool {
        if self.fresh < self.ready {
            return true;
        }
        let slots = STEP.min(SLOTS - self.ready);
        let (at, bytes) = (self.slot_at(self.ready as u32), STRIDE * slots * self.page);
        if !guarded::shut(at, bytes) || !guarded::open(at, bytes) {
            return false;
        }
        guarded::split_off(at, bytes);
        self.ready += slots;
        true
    }

    fn alloc_slot(&mut self, slots: usize) -> Option<(u32, Option<usize>)> {
        let most = slots.min(self.most_slots);
        if self.fresh < most {
            let slot = self.fresh as u32;
            if self.marked {
                if !self.make_ready() {
                    return None;
                }
            } else {
                guarded::split_off(self.slot_at(slot), self.page);
            }
            return self.open(slot).then(|| {
                self.fresh += 1;
                self.grow_ring();
                (slot, None)
            });
        }
        if self.waiting == 0 {
            return None;
        }
        // SAFETY: `waiting` entries from `first` on, modulo the ring's length, are written.
        let Waiting { slot, is_open, buffer } = unsafe { self.ring.add(self.first).read() };
        if !is_open && !self.open(slot) {
            return None;
        }
        (self.first, self.waiting) = ((self.first + 1) % self.places, self.waiting - 1);
        Some((slot, Some(buffer)))
    }

    fn grow_ring(&mut self) {
        if self.fresh <= self.places {
            return;
        }
        let behind_end = (self.first + self.waiting).saturating_sub(self.places);
        // SAFETY: moves the ring's beginning behind its end; all slots have memory.
        unsafe { self.ring.add(self.places).copy_from_nonoverlapping(self.ring, behind_end) };
        self.places *= 2;
    }

    fn next_buffer(&self) -> Option<usize> {
        // SAFETY: as in `alloc_slot`.
        (self.waiting > 0).then(|| unsafe { self.ring.add(self.first).read() }.buffer)
    }

    fn report_full(&mut self, guards: bool) {
        if guards && !core::mem::replace(&mut self.reported, true) {
            let buffers = (self.fresh - self.waiting + self.mapped) as u64;
            let line =
                Line::new().text("craton: debug: ").number(buffers).text(" buffers have separate pages, and the ");
            line.text("system allows too few mappings for more (vm.max_map_count): further ones are on the heap")
                .print();
        }
    }
}

/// The most slots of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Whose {
    Option = SLOTS,
    Sample = MOST_OUT,
    Paced = PACED_OUT,
}

pub(crate) struct Taken {
    pub(crate) area: Area,
    /// The buffer that was on these pages.
    pub(crate) before: Option<usize>,
    /// The buffer on the next pages: worth a prefetch.
    pub(crate) soon: Option<usize>,
}

impl Guards {
    pub(crate) const fn new() -> Self {
        Self(Mutex::ranked(
            Rank::KitGuards,
            Pages {
                arena: 0,
                page: 0,
                fresh: 0,
                ring: core::ptr::null_mut(),
                first: 0,
                waiting: 0,
                places: 0,
                most_slots: 0,
                mapped: 0,
                most_mapped: 0,
                mapped_samples: [0; PACED_MAPPED],
                unmarked: 0,
                ready: 0,
                marked: false,
                reported: false,
            },
        ))
    }

    pub(crate) fn alloc(&self, size: usize, align: usize, whose: Whose) -> Option<Taken> {
        let mut pages = self.0.lock();
        if !pages.set_up() || align > pages.page {
            return None;
        }
        let bytes = size.checked_next_multiple_of(align)?.max(align);
        if bytes <= pages.page {
            let Some((slot, before)) = pages.alloc_slot(whose as usize) else {
                pages.report_full(whose == Whose::Option);
                return None;
            };
            let under = pages.slot_at(slot);
            let address = under + pages.page - size.next_multiple_of(align);
            return Some(Taken { area: Area { under, address, kind: Kind::Slot }, before, soon: pages.next_buffer() });
        }
        let inner = bytes.checked_next_multiple_of(pages.page).filter(|inner| *inner <= isize::MAX as usize)?;
        let place = pages.mapped_samples.iter().position(|under| *under == 0);
        if pages.mapped >= pages.most_mapped || whose == Whose::Paced && place.is_none() {
            pages.report_full(whose == Whose::Option);
            return None;
        }
        let at = guarded::reserve(inner + 2 * pages.page)?;
        let under = at + pages.page;
        // The system joins wholly open mappings with those beside them.
        let opened = if pages.marked {
            guarded::open(at, inner + 2 * pages.page)
                && guarded::shut(at, pages.page)
                && guarded::shut(under + inner, pages.page)
        } else {
            guarded::open(under, inner)
        };
        if !opened {
            mapping::unmap(at, inner + 2 * pages.page);
            return None;
        }
        pages.mapped += 1;
        if let Some(place) = place.filter(|_| whose == Whose::Paced) {
            pages.mapped_samples[place] = under;
        }
        let area = Area { under, address: under + inner - bytes, kind: Kind::Mapped };
        Some(Taken { area, before: None, soon: None })
    }

    pub(crate) fn close(&self, buffer: &Buffer) -> bool {
        let (at, bytes) = (buffer.under, end_of(buffer) - buffer.under);
        // Under the lock: pages marked meanwhile must not be closed otherwise.
        let pages = self.0.lock();
        let closed = if pages.marked { guarded::shut(at, bytes) } else { guarded::close(at, bytes) };
        // Waiting samples are all that a small program has. With `debug=unmap` each free would pay.
        if closed && !pages.marked && buffer.checks & SAMPLED != 0 {
            guarded::discard(at, bytes);
        }
        closed
    }

    pub(crate) fn free_slot(&self, buffer: &Buffer, is_open: bool) {
        let mut pages = self.0.lock();
        let slot = ((buffer.under - pages.arena) / pages.page / STRIDE) as u32;
        let end = (pages.first + pages.waiting) % pages.places;
        // SAFETY: there are no more slots than places.
        unsafe { pages.ring.add(end).write(Waiting { slot, is_open, buffer: buffer.address }) };
        pages.waiting += 1;
    }

    pub(crate) fn free_mapped(&self, buffer: &Buffer) {
        let page = process::page_size();
        let mut pages = self.0.lock();
        pages.mapped -= 1;
        // Before the system can give the address to another sample.
        if let Some(place) = pages.mapped_samples.iter().position(|under| *under == buffer.under) {
            pages.mapped_samples[place] = 0;
        }
        drop(pages);
        mapping::unmap(buffer.under - page, end_of(buffer) - buffer.under + 2 * page);
    }

    /// `None`: no sample, or a mapped one at a requested rate.
    pub(crate) fn place_of(&self, under: usize, kind: Kind) -> Option<usize> {
        let pages = self.0.lock();
        match kind {
            Kind::Heap => None,
            Kind::Slot => Some((under - pages.arena) / pages.page / STRIDE).filter(|slot| *slot < MOST_OUT),
            Kind::Mapped => Some(MOST_OUT + pages.mapped_samples.iter().position(|at| *at == under)?),
        }
    }

    pub(crate) fn has(&self, address: usize) -> bool {
        let pages = self.0.lock();
        pages.page > 0 && address.wrapping_sub(pages.arena) < ARENA * pages.page
    }

    /// The ring's address and bytes, in the copy of a process.
    pub(crate) fn range(&self) -> (usize, usize) {
        // SAFETY: the copy's one thread holds the lock through no guard.
        (unsafe { self.0.held_for_fork() }.ring as usize, SLOTS * size_of::<Waiting>())
    }

    pub(crate) fn lock_for_fork(&self, nested: bool) {
        self.0.lock_for_fork(nested);
        // An interrupted call may be in the middle of a change.
        if !nested {
            let saved = process::errno();
            // SAFETY: taken just now.
            unsafe { self.0.held_for_fork() }.mark();
            process::set_errno(saved);
        }
    }

    /// # Safety
    /// As [`Mutex::release_after_fork`].
    pub(crate) unsafe fn release_after_fork(&self) {
        // SAFETY: by the contract.
        unsafe { self.0.release_after_fork() };
    }
}

pub(crate) fn end_of(buffer: &Buffer) -> usize {
    let page = process::page_size();
    match buffer.kind {
        Kind::Slot => buffer.under + page,
        _ => (buffer.address + buffer.size.max(1)).next_multiple_of(page),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
