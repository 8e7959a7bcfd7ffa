//! What a cache of a class knows of one slab.
//!
//! **State.** 32 bytes in a table indexed by the slab's first page; zeros are a page that begins no
//! slab.
//! ```text
//! first free object (8) · next (4) · prev (4) · front end's word (4) · morph (4) · used (2) · carved (2) · last free object (2) ·
//! front end's byte (1) · alone (1)
//! ```
//! `morph` is 0, or, in a slab that holds objects of two sizes, where [`Morphs`](crate::Morphs)
//! keeps what is known of them (20 bits) and the size of the new ones in units of 16 bytes (11
//! bits); or, with its highest bit, a tag of the front end. `alone` says of a slab of two sizes
//! that no old object is out any more. The last free object is kept by its distance from the slab's
//! start in units of 16 bytes, and means nothing when there is none.
//!
//! **Unsafe.** Declares that zeros are a valid record; follows and writes free objects' links.

use crate::chain::{self, Chain};
use crate::lists::Links;
use core::mem::offset_of;
use core::num::NonZeroU32;
use craton_base::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use craton_base::{PageId, Table, Zeroed};

/// A slab of a size class, by its first page: that plus 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlabId(NonZeroU32);

impl SlabId {
    #[inline]
    pub(crate) fn of(first: PageId) -> Self {
        // SAFETY: a region has fewer than 2^32 - 1 pages, so that the sum is not 0.
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

/// Where the records of all slabs are, by first page.
pub trait Records {
    /// The record of the slab that begins at a page.
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

/// The record of one slab. Atomics, because records of different caches lie in one table: the
/// cache's lock orders all accesses but those to the front end's own.
#[derive(Default, Debug)]
#[repr(C, align(32))]
pub struct SlabRecord {
    free: AtomicUsize,
    next: AtomicU32,
    prev: AtomicU32,
    /// The front end's own, at which the slab layer never looks.
    pub front_word: AtomicU32,
    morph: AtomicU32,
    used: AtomicU16,
    carved: AtomicU16,
    last: AtomicU16,
    /// The front end's own as well.
    pub front_byte: AtomicU8,
    alone: AtomicU8,
}

const _: () = assert!(cfg!(loom) || size_of::<SlabRecord>() == 32);

/// What objects' sizes and distances are multiples of.
const UNIT: usize = 16;
/// Bits of `morph` that name an entry.
const ENTRY_BITS: u32 = 20;
/// Bits of `morph` for a size in units.
const SIZE_BITS: u32 = 11;
/// The bit of `morph` that says that it is a tag of the front end.
const TAG: u32 = 1 << (ENTRY_BITS + SIZE_BITS);

/// The entry of a slab of two sizes, by the record's `morph`; 0 for others.
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
    /// Where what lies, and how words are divided, for who reads another process.
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

    /// Looks at each field, as a model does before its threads begin.
    #[cfg(loom)]
    pub fn touch(&self) {
        let _ = (self.free(), self.next(), self.prev(), self.used(), self.carved(), self.last(), self.morph_entry());
    }

    /// How many objects of the slab have ever been handed out: the first so many of its places.
    pub fn cut_objects(&self) -> u16 {
        self.carved()
    }

    /// Makes the record that of a fresh slab.
    pub(crate) fn begin(&self) {
        self.set_free(0);
        self.set_used(0);
        self.set_carved(0);
    }

    /// So many slabs of two sizes can be told apart.
    pub(crate) const MORPHS: usize = 1 << ENTRY_BITS;

    /// Whether a slab can become one of objects of this size.
    pub(crate) const fn can_morph_to(object: u32) -> bool {
        object < (UNIT as u32) << SIZE_BITS
    }

    /// Whether the slab holds objects of two sizes, and whether the new ones are then not of this
    /// one. By one look: whoever has not the lock of the slab's owner may look while the slab
    /// becomes an ordinary one.
    #[inline]
    pub(crate) fn sizes(&self, object: u32) -> (bool, bool) {
        let morph = self.morph.load(Ordering::Relaxed);
        let is_morphed = entry_of(morph) != 0;
        (is_morphed, is_morphed && morph >> ENTRY_BITS != object / UNIT as u32)
    }

    /// Where the entry of a slab of two sizes lies; 0 for ordinary slabs.
    #[inline]
    pub(crate) fn morph_entry(&self) -> u32 {
        entry_of(self.morph.load(Ordering::Relaxed))
    }

    /// Whether the slab holds objects of two sizes, of which the new one is this.
    pub(crate) fn is_morph_to(&self, object: u32) -> bool {
        let morph = self.morph.load(Ordering::Relaxed);
        // What a page of a heap of its own leaves here can look like a size.
        entry_of(morph) != 0 && morph >> ENTRY_BITS == object / UNIT as u32
    }

    /// Makes the record that of a slab of two sizes, or a part: where its entry lies, and the new
    /// size.
    pub(crate) fn set_morph(&self, entry: u32, object: u32) {
        self.morph.store(entry | (object / UNIT as u32) << ENTRY_BITS, Ordering::Relaxed);
    }

    /// Makes the record that of a slab of two sizes with no new object in use, only free `places`.
    pub(crate) fn begin_morph(&self, start: *mut u8, places: Chain) {
        self.set_used(0);
        self.set_alone(false);
        self.set_carved(places.len() as u16);
        self.set_last(((places.last() as usize).wrapping_sub(start as usize) / UNIT) as u16);
        self.set_free(places.into_raw().0 as usize);
    }

    /// Makes a slab of two sizes, or a part of one, ordinary.
    pub(crate) fn settle(&self) {
        self.morph.store(0, Ordering::Relaxed);
    }

    /// Whether no old object of a slab of two sizes is out.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed) != 0
    }

    /// Notes that.
    pub(crate) fn set_alone(&self, alone: bool) {
        self.alone.store(alone.into(), Ordering::Relaxed);
    }

    /// Free objects: places that were cut and are not in use.
    pub(crate) fn free_objects(&self) -> u16 {
        self.carved() - self.used()
    }

    /// The last of the slab's free objects, if there are any. The slab begins at `start`.
    pub(crate) fn last_free(&self, start: *mut u8) -> *mut u8 {
        start.wrapping_add(usize::from(self.last()) * UNIT)
    }

    /// Moves up to `want` free objects to a chain; says how many. The caller changes the count in
    /// use.
    ///
    /// # Safety
    /// The slab begins at `start`, its record and its free objects are the caller's.
    #[inline]
    pub(crate) unsafe fn take_free(&self, start: *mut u8, want: u32, to: &mut Chain) -> u16 {
        let (first, all) = (self.free() as *mut u8, self.free_objects());
        if first.is_null() || want == 0 {
            return 0;
        }
        if u32::from(all) <= want {
            // SAFETY: all free objects hang from the first, and the last one's link is null.
            unsafe { to.append(first, self.last_free(start), all.into()) };
            self.set_free(0);
            return all;
        }
        let mut last = first;
        for _ in 1..want {
            // SAFETY: there are more than `want` linked objects.
            last = unsafe { chain::next(last) };
        }
        // SAFETY: as above; the part that goes out is cut off behind `last`.
        unsafe {
            self.set_free(chain::next(last) as usize);
            chain::link(last, core::ptr::null_mut());
            to.append(first, last, want);
        }
        want as u16
    }

    /// Puts objects linked from `first` to `last` before the others. The caller changes the count
    /// in use.
    ///
    /// # Safety
    /// As [`SlabRecord::take_free`]; the objects lie on the slab, and the caller gives them up.
    #[inline]
    pub(crate) unsafe fn put_free(&self, start: *mut u8, first: *mut u8, last: *mut u8) {
        let others = self.free() as *mut u8;
        if others.is_null() {
            self.set_last(((last as usize - start as usize) / UNIT) as u16);
        }
        // SAFETY: the object is the caller's.
        unsafe { chain::link(last, others) };
        self.set_free(first as usize);
    }

    /// Tags a page whose slabs never morph with up to 31 bits of the front end's.
    pub fn set_tag(&self, tag: u32) {
        self.morph.store(TAG | tag, Ordering::Relaxed);
    }

    /// The tag.
    #[inline]
    pub fn tag(&self) -> u32 {
        self.morph.load(Ordering::Relaxed) & !TAG
    }

    /// Next and previous of a span that is no slab, in a front end's list, as pages plus 1, or 0.
    pub fn neighbours(&self) -> (u32, u32) {
        (self.next(), self.prev())
    }

    /// Changes them.
    pub fn set_neighbours(&self, next: u32, prev: u32) {
        self.set_next(next);
        self.set_prev(prev);
    }
}

#[cfg(test)]
mod tests;
