//! The record of one slab of a size class, by its first page.
//!
//! ```text
//! first free (8) · next (4) · prev (4) · front end's word (4) · morph (4) · used (2) · carved (2)
//! · last free (2), from the slab's start / 16 · front end's byte (1) · alone (1)
//! ```
//! `morph`: 0; or a [`Morphs`](crate::Morphs) entry (18 bits) and the new size / 16 (13 bits); or,
//! with the highest bit set, the front end's tag. `alone`: no old object of a slab of two sizes is
//! out; of an ordinary slab, the name of the smallest size without room since the last free, or 0.
//! **Unsafe.** Declares that zeros are a valid record; uses free objects' links.

use crate::chain::{self, Chain, Marks};
use crate::lists::Links;
use core::mem::offset_of;
use core::num::NonZeroU32;
use craton_base::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use craton_base::{PageId, Table, Zeroed};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlabId(NonZeroU32);

impl SlabId {
    #[inline]
    pub(crate) fn of(first: PageId) -> Self {
        // SAFETY: a region has fewer than 2^32 - 1 pages.
        Self(unsafe { NonZeroU32::new_unchecked(first.0.wrapping_add(1)) })
    }

    #[inline]
    pub(crate) fn page(self) -> PageId {
        PageId(self.0.get() - 1)
    }

    fn of_link(link: u32) -> Option<Self> {
        NonZeroU32::new(link).map(Self)
    }

    fn link(slab: Option<Self>) -> u32 {
        slab.map_or(0, |slab| slab.0.get())
    }
}

pub trait Records {
    fn of(&self, first: PageId) -> &SlabRecord;
}

impl<R: AsRef<SlabRecord>> Records for Table<R> {
    #[inline]
    fn of(&self, first: PageId) -> &SlabRecord {
        self[first.0 as usize].as_ref()
    }
}

impl<R: Records> Links for R {
    type Slab = SlabId;

    #[inline]
    fn next(&self, slab: SlabId) -> Option<SlabId> {
        SlabId::of_link(self.of(slab.page()).next())
    }

    #[inline]
    fn prev(&self, slab: SlabId) -> Option<SlabId> {
        SlabId::of_link(self.of(slab.page()).prev())
    }

    #[inline]
    fn set_next(&self, slab: SlabId, to: Option<SlabId>) {
        self.of(slab.page()).set_next(SlabId::link(to));
    }

    #[inline]
    fn set_prev(&self, slab: SlabId, to: Option<SlabId>) {
        self.of(slab.page()).set_prev(SlabId::link(to));
    }
}

/// Atomic because caches share records; the cache's lock orders all but the front end's fields.
#[derive(Default, Debug)]
#[repr(C, align(32))]
pub struct SlabRecord {
    free: AtomicUsize,
    next: AtomicU32,
    prev: AtomicU32,
    morph: AtomicU32,
    used: AtomicU16,
    carved: AtomicU16,
    last: AtomicU16,
    pub front_byte: AtomicU8,
    alone: AtomicU8,
}

const _: () = assert!(cfg!(loom) || size_of::<SlabRecord>() == 32);

const UNIT: usize = 16;
const ENTRY_BITS: u32 = 18;
const SIZE_BITS: u32 = 13;
const TAG: u32 = 1 << 31;

#[inline]
fn entry_of(morph: u32) -> u32 {
    if morph & TAG == 0 { morph & ((1 << ENTRY_BITS) - 1) } else { 0 }
}

// SAFETY: atomics of zero are valid.
unsafe impl Zeroed for SlabRecord {}

impl AsRef<Self> for SlabRecord {
    #[inline]
    fn as_ref(&self) -> &Self {
        self
    }
}

macro_rules! field {
    ($get:ident, $set:ident, $field:ident, $t:ty) => {
        pub(crate) fn $get(&self) -> $t {
            self.$field.load(Ordering::Relaxed)
        }
        pub(crate) fn $set(&self, value: $t) {
            self.$field.store(value, Ordering::Relaxed)
        }
    };
}

impl SlabRecord {
    /// For readers of another process.
    pub const SHAPE: [(&'static str, usize); 11] = [
        ("record.bytes", size_of::<Self>()),
        ("record.free", offset_of!(Self, free)),
        ("record.next", offset_of!(Self, next)),
        ("record.morph", offset_of!(Self, morph)),
        ("record.used", offset_of!(Self, used)),
        ("record.carved", offset_of!(Self, carved)),
        ("record.last", offset_of!(Self, last)),
        ("record.alone", offset_of!(Self, alone)),
        ("record.unit", UNIT),
        ("record.entry_bits", ENTRY_BITS as usize),
        ("record.owned_bit", TAG as usize),
    ];

    field!(free, set_free, free, usize);
    field!(next, set_next, next, u32);
    field!(prev, set_prev, prev, u32);
    field!(used, set_used, used, u16);
    field!(carved, set_carved, carved, u16);
    field!(last, set_last, last, u16);

    #[cfg(loom)]
    pub fn touch(&self) {
        let _ = (self.free(), self.next(), self.prev(), self.used(), self.carved(), self.last(), self.morph_entry());
    }

    pub fn cut_objects(&self) -> u16 {
        self.carved()
    }

    pub(crate) fn begin(&self) {
        self.refuse(0);
        self.set_free(0);
        self.set_used(0);
        self.set_carved(0);
    }

    pub(crate) const MORPHS: usize = 1 << ENTRY_BITS;

    pub(crate) const fn can_morph_to(object: u32) -> bool {
        object < (UNIT as u32) << SIZE_BITS
    }

    /// Whether there are two sizes, and the new one differs from `object`: one load, right without
    /// the owner's lock while the slab settles.
    #[inline]
    pub(crate) fn sizes(&self, object: u32) -> (bool, bool) {
        let morph = self.morph.load(Ordering::Relaxed);
        let is_morphed = entry_of(morph) != 0;
        (is_morphed, is_morphed && morph >> ENTRY_BITS != object / UNIT as u32)
    }

    #[inline]
    pub(crate) fn morph_entry(&self) -> u32 {
        entry_of(self.morph.load(Ordering::Relaxed))
    }

    /// The entry, below [`Self::MORPHS`] for any page, and the new size in units of 16 bytes.
    #[inline(always)]
    pub(crate) fn entry_and_units(&self) -> (usize, usize) {
        let morph = self.morph.load(Ordering::Relaxed);
        ((morph & (Self::MORPHS as u32 - 1)) as usize, (morph >> ENTRY_BITS) as usize)
    }

    pub(crate) fn is_morph_to(&self, object: u32) -> bool {
        let morph = self.morph.load(Ordering::Relaxed);
        // A named heap's page may leave a value that looks like a size.
        entry_of(morph) != 0 && morph >> ENTRY_BITS == object / UNIT as u32
    }

    pub(crate) fn set_morph(&self, entry: u32, object: u32) {
        self.morph.store(entry | (object / UNIT as u32) << ENTRY_BITS, Ordering::Relaxed);
    }

    pub(crate) fn begin_morph(&self, start: *mut u8, places: Chain) {
        self.set_used(0);
        self.set_alone(false);
        self.set_carved(places.len() as u16);
        self.set_last(((places.last() as usize).wrapping_sub(start as usize) / UNIT) as u16);
        self.set_free(if places.is_empty() { 0 } else { places.into_raw().0 as usize });
    }

    pub(crate) fn settle(&self) {
        self.morph.store(0, Ordering::Relaxed);
        self.set_alone(false);
    }

    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn refuses(&self, name: u8) -> bool {
        (1..=name).contains(&self.alone.load(Ordering::Relaxed))
    }

    pub(crate) fn refuse(&self, name: u8) {
        self.alone.store(name, Ordering::Relaxed);
    }

    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone.into(), Ordering::Relaxed);
    }

    pub fn first_free(&self) -> *mut u8 {
        self.free() as *mut u8
    }

    pub(crate) fn free_objects(&self) -> u16 {
        self.carved() - self.used()
    }

    pub(crate) fn last_free(&self, start: *mut u8) -> *mut u8 {
        start.wrapping_add(usize::from(self.last()) * UNIT)
    }

    /// Returns the number popped; the caller updates `used`. Error: an object that is not free on
    /// the slab, or leads to no such object.
    /// # Safety
    /// The slab begins at `start`, with its free objects in `bytes`; record and free objects are
    /// the caller's.
    #[inline]
    pub(crate) unsafe fn pop_free_run(
        &self,
        start: *mut u8,
        bytes: usize,
        want: u32,
        to: &mut Chain,
        marks: &impl Marks,
    ) -> Result<u16, *mut u8> {
        let (first, n) = (self.free() as *mut u8, want.min(self.free_objects().into()));
        if n == 0 {
            return Ok(0);
        }
        // Links may be overwritten: follows each free object of the slab once.
        let is_here = |at: *mut u8| (at as usize).wrapping_sub(start as usize) < bytes;
        let (mut last, mut at) = (first, first);
        for _ in 0..n {
            if !is_here(at) || !marks.take(at) {
                return Err(at);
            }
            last = at;
            // SAFETY: a free object of the slab.
            at = unsafe { chain::next(at) };
        }
        let is_last = n == self.free_objects().into();
        if !(if is_last { at == chain::end() } else { is_here(at) }) {
            return Err(last);
        }
        // SAFETY: as above.
        unsafe {
            self.set_free(if is_last { 0 } else { at as usize });
            chain::link(last, chain::end());
            to.append(first, last, n);
        }
        Ok(n as u16)
    }

    /// The caller updates `used`.
    /// # Safety
    /// As [`SlabRecord::pop_free_run`]; the list lies on the slab, and is given up.
    #[inline]
    pub(crate) unsafe fn put_free(&self, start: *mut u8, first: *mut u8, last: *mut u8) {
        let others = self.free() as *mut u8;
        if others.is_null() {
            self.set_last(((last as usize - start as usize) / UNIT) as u16);
        }
        // SAFETY: `last` is the caller's.
        unsafe { chain::link(last, if others.is_null() { chain::end() } else { others }) };
        self.set_free(first as usize);
    }

    /// Up to 31 bits for the front end, on a page whose slabs never morph.
    pub fn set_tag(&self, tag: u32) {
        self.morph.store(TAG | tag, Ordering::Relaxed);
    }

    #[inline]
    pub fn tag(&self) -> u32 {
        self.morph.load(Ordering::Relaxed) & !TAG
    }

    /// In a front end's list of spans, as pages plus 1, or 0.
    pub fn neighbours(&self) -> (u32, u32) {
        (self.next(), self.prev())
    }

    pub fn set_neighbours(&self, next: u32, prev: u32) {
        self.set_next(next);
        self.set_prev(prev);
    }
}

#[cfg(test)]
mod tests;
