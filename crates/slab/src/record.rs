//! The record of one slab of a size class.
//!
//! **State.** 32 bytes by the slab's first page; zeros: no slab begins here.
//! ```text
//! first free (8) · next (4) · prev (4) · front end's word (4) · morph (4) · used (2) · carved (2)
//! · last free (2) · front end's byte (1) · alone (1)
//! ```
//! `morph`: 0, or, for a slab of two sizes, its [`Morphs`](crate::Morphs) entry (18 bits) and the
//! new size / 16 (13 bits); with the highest bit set, a tag of the front end. `alone`: no old
//! object of a slab of two sizes is out; of an ordinary slab, the smallest size, by name, that
//! found no room since an object was freed, or 0. `last free`: distance from the slab's start / 16,
//! without meaning when the list is empty.
//! **Unsafe.** Declares that zeros are a valid record; follows and writes free objects' links.

use crate::chain::{self, Chain, Marks};
use crate::lists::Links;
use core::mem::offset_of;
use core::num::NonZeroU32;
use craton_base::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use craton_base::{PageId, Table, Zeroed};

/// Its first page plus 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlabId(NonZeroU32);

impl SlabId {
    #[inline]
    pub(crate) fn of(first: PageId) -> Self {
        // SAFETY: a region has fewer than 2^32 - 1 pages: the sum is not 0.
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
    /// Returns the record of the slab that begins at a page.
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

/// Atomic: caches share it. The cache's lock orders all but the front end's.
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
    /// The front end's.
    pub front_byte: AtomicU8,
    alone: AtomicU8,
}

const _: () = assert!(cfg!(loom) || size_of::<SlabRecord>() == 32);

const UNIT: usize = 16;
const ENTRY_BITS: u32 = 18;
const SIZE_BITS: u32 = 13;
const TAG: u32 = 1 << 31;

/// 0: an ordinary slab.
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
    /// Offsets and sizes, for readers of another process.
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

    /// Touches each field, before a model's threads begin.
    #[cfg(loom)]
    pub fn touch(&self) {
        let _ = (self.free(), self.next(), self.prev(), self.used(), self.carved(), self.last(), self.morph_entry());
    }

    /// Ever carved: the slab's first places.
    pub fn cut_objects(&self) -> u16 {
        self.carved()
    }

    pub(crate) fn begin(&self) {
        self.refuse(0);
        self.set_free(0);
        self.set_used(0);
        self.set_carved(0);
    }

    /// Pages of slabs of two sizes.
    pub(crate) const MORPHS: usize = 1 << ENTRY_BITS;

    pub(crate) const fn can_morph_to(object: u32) -> bool {
        object < (UNIT as u32) << SIZE_BITS
    }

    /// Two sizes; and the new one differs from `object`. One load: right without the owner's lock
    /// while the slab settles.
    #[inline]
    pub(crate) fn sizes(&self, object: u32) -> (bool, bool) {
        let morph = self.morph.load(Ordering::Relaxed);
        let is_morphed = entry_of(morph) != 0;
        (is_morphed, is_morphed && morph >> ENTRY_BITS != object / UNIT as u32)
    }

    /// 0: an ordinary slab.
    #[inline]
    pub(crate) fn morph_entry(&self) -> u32 {
        entry_of(self.morph.load(Ordering::Relaxed))
    }

    /// Below [`Self::MORPHS`], and the new size in units of 16 bytes. 0: other slabs; of a tagged
    /// page, anything.
    #[inline(always)]
    pub(crate) fn entry_and_units(&self) -> (usize, usize) {
        let morph = self.morph.load(Ordering::Relaxed);
        ((morph & (Self::MORPHS as u32 - 1)) as usize, (morph >> ENTRY_BITS) as usize)
    }

    /// Two sizes, the new one `object`.
    pub(crate) fn is_morph_to(&self, object: u32) -> bool {
        let morph = self.morph.load(Ordering::Relaxed);
        // A named heap's page may leave a value that looks like a size.
        entry_of(morph) != 0 && morph >> ENTRY_BITS == object / UNIT as u32
    }

    /// The slab, or a part of it.
    pub(crate) fn set_morph(&self, entry: u32, object: u32) {
        self.morph.store(entry | (object / UNIT as u32) << ENTRY_BITS, Ordering::Relaxed);
    }

    /// Without new objects, with the free `places`.
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

    /// Two sizes, no live old object.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed) != 0
    }

    /// The size, or a smaller one, found no room on an ordinary slab.
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

    /// If any, of the slab at `start`.
    pub(crate) fn last_free(&self, start: *mut u8) -> *mut u8 {
        start.wrapping_add(usize::from(self.last()) * UNIT)
    }

    /// Up to `want`; returns how many. The caller updates `used`. Error: an object not free on the
    /// slab, or that leads to none; those before are marked as on their way.
    /// # Safety
    /// The slab begins at `start`, with all its free objects in `bytes`; record and free objects
    /// are the caller's.
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
        // Links may be overwritten: follows only free objects of the slab, each once.
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
        // The next call begins with the object to which the last one leads.
        let is_last = n == self.free_objects().into();
        if !(if is_last { at == chain::end() } else { is_here(at) }) {
            return Err(last);
        }
        // SAFETY: as above; cuts off behind `last`.
        unsafe {
            self.set_free(if is_last { 0 } else { at as usize });
            chain::link(last, chain::end());
            to.append(first, last, n);
        }
        Ok(n as u16)
    }

    /// Linked from `first` to `last`. The caller updates `used`.
    /// # Safety
    /// As [`SlabRecord::pop_free_run`]; the objects lie on the slab, and are given up.
    #[inline]
    pub(crate) unsafe fn put_free(&self, start: *mut u8, first: *mut u8, last: *mut u8) {
        let others = self.free() as *mut u8;
        if others.is_null() {
            self.set_last(((last as usize - start as usize) / UNIT) as u16);
        }
        // SAFETY: the caller's object.
        unsafe { chain::link(last, if others.is_null() { chain::end() } else { others }) };
        self.set_free(first as usize);
    }

    /// Sets up to 31 bits for the front end, on a page whose slabs never morph.
    pub fn set_tag(&self, tag: u32) {
        self.morph.store(TAG | tag, Ordering::Relaxed);
    }

    #[inline]
    pub fn tag(&self) -> u32 {
        self.morph.load(Ordering::Relaxed) & !TAG
    }

    /// Returns the neighbours in a front end's list of spans, as pages plus 1, or 0.
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
