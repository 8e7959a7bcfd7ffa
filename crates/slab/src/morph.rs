//! What is known of slabs that hold objects of two sizes.
//!
//! **What.** A slab with few live objects may change its size class: objects of the new size go wherever no live object
//! of the old size lies. Until the last old object is back, an entry of [`Morphs`] says which old objects live;
//! everything else follows from that: a place of the new size is usable exactly when no live old object overlaps it.
//!
//! **From.** NVAlloc §5.2. There each new place has a counter of the old objects that cover it, and the old class's
//! table lies in the slab's header; here a bit for each old and each new place is enough, since whether a place has
//! become usable is a look at one or two words, and nothing lies in the slab.
//!
//! **Units.** Bytes from the slab's start; places are counted from there on either grid.
//!
//! **State.**
//! ```text
//! old objects |  a  |     |     |  b  |     |     |     |     |     a and b live
//! new places  |   -   |       |   -   |   -   |       |       |     - not usable
//! ```
//!
//! **Threads.** Under a lock of its own, which is taken after that of the slab's cache.
//!
//! **Unsafe.** Declares that zeros are a valid entry.
//!
//! **Cost.** 152 bytes for each such slab; a look is O(1).

use crate::geometry::Geometry;
use crate::record::SlabRecord;
use core::ops::Range;
use craton_base::{PageId, Table, Zeroed};

/// Most objects of a slab, of either size, with which it can morph.
pub(crate) const MAX_PLACES: usize = 512;
const WORDS: usize = MAX_PLACES / 64;

/// A slab of two sizes.
#[derive(Clone, Copy, Debug)]
pub struct Morph {
    /// A bit for each place of the old size, set while its object is out.
    live: [u64; WORDS],
    /// A bit for each place of the new size, set while no old object that is out overlaps it.
    usable: [u64; WORDS],
    pub(crate) slab: PageId,
    /// Next free entry, when this is one.
    next: u32,
    /// Sizes of objects.
    pub(crate) old: u32,
    pub(crate) new: u32,
    /// Bits that are set.
    pub(crate) count: u16,
    old_places: u16,
    pub(crate) new_places: u16,
    /// The front end's names for the two sizes.
    from: u8,
    to: u8,
}

// SAFETY: numbers only.
unsafe impl Zeroed for Morph {}

/// The places of size `by` that a place of size `object` overlaps.
fn overlapped(place: usize, object: u32, by: u32) -> Range<usize> {
    let (start, end) = (place * object as usize, (place + 1) * object as usize);
    start / by as usize..end.div_ceil(by as usize)
}

impl Morph {
    /// A slab of `old` that is to become one of `new`; `from` and `to` are the front end's names for them. No old
    /// object lives yet.
    pub(crate) fn new(slab: PageId, old: Geometry, new: Geometry, from: u8, to: u8) -> Self {
        let (old_places, new_places) = (old.capacity, new.capacity);
        let (old, new) = (old.object, new.object);
        Self {
            live: [0; WORDS],
            usable: [0; WORDS],
            slab,
            next: 0,
            old,
            new,
            count: 0,
            old_places,
            new_places,
            from,
            to,
        }
    }

    /// Notes that an old object is out. Says whether that was news.
    pub(crate) fn set(&mut self, place: usize) -> bool {
        let news = !self.lives(place);
        self.live[place / 64] |= 1 << (place % 64);
        self.count += u16::from(news);
        news
    }

    /// Notes that an old object is back. Says whether it was out.
    pub(crate) fn clear(&mut self, place: usize) -> bool {
        let lived = self.lives(place);
        if lived {
            self.live[place / 64] &= !(1 << (place % 64));
            self.count -= 1;
        }
        lived
    }

    /// Whether the old object of that place is out.
    pub(crate) fn lives(&self, place: usize) -> bool {
        place < usize::from(self.old_places) && is_set(&self.live, place)
    }

    /// Whether no live old object overlaps the new place, as noted.
    pub(crate) fn usable(&self, place: usize) -> bool {
        place < usize::from(self.new_places) && is_set(&self.usable, place)
    }

    /// Whether no live old object overlaps the new place, by the live ones.
    pub(crate) fn is_clear(&self, place: usize) -> bool {
        overlapped(place, self.new, self.old).all(|old| !self.lives(old))
    }

    /// Notes which places are usable, and says how many.
    pub(crate) fn note_usable(&mut self) -> usize {
        let mut blocked = [0u64; WORDS];
        for old in set_bits(&self.live) {
            self.covered_by(old).for_each(|place| blocked[place / 64] |= 1 << (place % 64));
        }
        let places = usize::from(self.new_places);
        (0..places).filter(|p| !is_set(&blocked, *p)).for_each(|p| self.usable[p / 64] |= 1 << (p % 64));
        self.usable_places().count()
    }

    /// Notes that a place has become usable.
    pub(crate) fn open(&mut self, place: usize) {
        self.usable[place / 64] |= 1 << (place % 64);
    }

    /// The new places that an old object overlaps.
    pub(crate) fn covered_by(&self, old_place: usize) -> Range<usize> {
        let places = overlapped(old_place, self.old, self.new);
        places.start..places.end.min(usize::from(self.new_places))
    }

    /// Old objects that are out, counted.
    pub(crate) fn count_live(&self) -> usize {
        set_bits(&self.live).count()
    }

    /// The usable places, as noted.
    pub(crate) fn usable_places(&self) -> impl Iterator<Item = usize> {
        set_bits(&self.usable)
    }
}

fn is_set(words: &[u64; WORDS], bit: usize) -> bool {
    words[bit / 64] >> (bit % 64) & 1 == 1
}

/// The numbers of the bits that are set.
fn set_bits(words: &[u64; WORDS]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(w, word)| {
        let mut left = *word;
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| w * 64 + left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(bit)
        })
    })
}

/// What lies at a place of a slab of two sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// An object of the old size that is out.
    Old {
        /// The front end's name for the old size.
        class: u8,
        /// Bytes behind the object's start.
        offset: usize,
    },
    /// A place of the new size: an object that is out, or a free one.
    New {
        /// The front end's name for the new size.
        class: u8,
        /// Bytes behind the place's start.
        offset: usize,
        /// The name of the old size, if this is not the place's start and an object of that size began here, which is
        /// back.
        was_old: Option<u8>,
    },
    /// Neither.
    Nothing {
        /// The name of the old size, if an object of it began here, which is back.
        was_old: Option<u8>,
    },
}

/// All slabs of two sizes.
pub struct Morphs {
    entries: Table<Morph>,
    /// Entries that have ever been used; the first one never is.
    begun: u32,
    /// First free entry that was used before, or 0.
    free: u32,
    /// Slabs of two sizes, now.
    slabs: u32,
    /// Bytes of old objects that are out.
    old_bytes: u64,
}

impl Morphs {
    /// Without room for any; all zeros.
    pub const EMPTY: Self = Self { entries: Table::EMPTY, begun: 0, free: 0, slabs: 0, old_bytes: 0 };

    /// With a table of entries, of which one stays empty.
    pub fn new(entries: Table<Morph>) -> Self {
        Self { entries, begun: 1, free: 0, slabs: 0, old_bytes: 0 }
    }

    /// Whether there is no table yet.
    pub fn is_unset(&self) -> bool {
        self.begun == 0
    }

    /// Slabs of two sizes, now.
    pub fn slabs(&self) -> u32 {
        self.slabs
    }

    /// Bytes of objects of old sizes that are out.
    pub fn old_bytes(&self) -> u64 {
        self.old_bytes
    }

    /// Whether there is room for one more.
    pub(crate) fn has_room(&self) -> bool {
        self.free != 0 || (self.begun as usize) < self.entries.len().min(SlabRecord::MORPHS)
    }

    /// The entries of all slabs of two sizes, with their numbers.
    pub(crate) fn live_entries(&self) -> impl Iterator<Item = (u32, &Morph)> {
        (1..self.begun).map(|at| (at, &self.entries[at as usize])).filter(|(_, entry)| entry.count > 0)
    }

    /// Keeps an entry; there is room.
    pub(crate) fn insert(&mut self, entry: Morph) -> u32 {
        let at = if self.free != 0 { self.free } else { self.begun };
        if at == self.begun {
            self.begun += 1;
        } else {
            self.free = self.entries[at as usize].next;
        }
        self.slabs += 1;
        self.old_bytes += u64::from(entry.count) * u64::from(entry.old);
        self.entries[at as usize] = entry;
        at
    }

    /// Forgets an entry, whose old objects are all back.
    pub(crate) fn remove(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        debug_assert_eq!(entry.count, 0, "old objects live");
        (entry.slab, entry.next) = (PageId(0), self.free);
        self.free = at;
        self.slabs -= 1;
    }

    /// The entry of a slab of two sizes.
    pub(crate) fn of(&self, record: &SlabRecord) -> Option<&Morph> {
        let at = record.morph_entry();
        (at != 0 && at < self.begun).then(|| &self.entries[at as usize])
    }

    /// Notes that the old object of a place is back; `None` if it was not out.
    pub(crate) fn take_old(&mut self, record: &SlabRecord, place: usize) -> Option<&mut Morph> {
        let at = record.morph_entry();
        if at == 0 || at >= self.begun || !self.entries[at as usize].clear(place) {
            return None;
        }
        let entry = &mut self.entries[at as usize];
        self.old_bytes -= u64::from(entry.old);
        Some(entry)
    }

    /// The name of the size that a slab's new objects have; `None` if it is no slab of two sizes.
    pub fn class_of(&self, record: &SlabRecord) -> Option<u8> {
        self.of(record).map(|entry| entry.to)
    }

    /// What lies so many bytes behind the start of a slab; `None` if it is no slab of two sizes.
    pub fn look(&self, record: &SlabRecord, bytes: usize) -> Option<Place> {
        let entry = self.of(record)?;
        // 32 bits, since a division by twice as many takes twice as long.
        let bytes = u32::try_from(bytes).ok()?;
        let (place, offset) = ((bytes / entry.new) as usize, (bytes % entry.new) as usize);
        let usable = entry.usable(place);
        if usable && offset == 0 {
            return Some(Place::New { class: entry.to, offset, was_old: None });
        }
        let old = (bytes / entry.old) as usize;
        if entry.lives(old) {
            return Some(Place::Old { class: entry.from, offset: (bytes % entry.old) as usize });
        }
        let starts = bytes.is_multiple_of(entry.old) && old < usize::from(entry.old_places);
        let was_old = starts.then_some(entry.from);
        Some(if usable { Place::New { class: entry.to, offset, was_old } } else { Place::Nothing { was_old } })
    }
}
