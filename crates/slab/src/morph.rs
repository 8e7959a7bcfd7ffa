//! Entries of slabs that hold objects of two sizes.
//!
//! **What.** A slab with few live objects may change its size class, and two neighbours may merge
//! into one slab. New places fill the gaps between live old objects. Until the last old object is
//! freed, a [`Morphs`] entry lists the live old objects and the new places.
//! **From.** NVAlloc §5.2 keeps new places on the new size's grid. Ours begin anywhere in a gap:
//! twice the room where half of the old objects live. In return the slab must *settle* after the
//! last old object: a freed place off the grid is closed, places on the grid open instead, and the
//! last one makes the slab ordinary.
//! **Units.** Bytes from the slab's start. Old places are numbered; those of a second part start at
//! [`HALF`]. A new place is one bit for the 512th part of the slab in which it begins: at the grid
//! place there, if any, or else at the part.
//! ```text
//! old objects |  a  |     |     |  b  |     |     |     |     |     a and b live
//! new places        |       |         |       |       |       |     fill each gap
//! ```
//! **Threads.** Under its lock, taken after the slab's cache lock. **Cost.** 144 bytes per entry; a
//! lookup is a few divisions and a search in eight words.
//! **Unsafe.** Declares that zeros are a valid entry.

use crate::geometry::Geometry;
use crate::record::{Records, SlabRecord};
use craton_base::{PAGE_SIZE, PageId, PageRange, Pages, Table, Zeroed};

/// Most objects of a morphing slab, or of two that merge.
pub(crate) const MAX_OLD: usize = 256;
/// Most objects of one of two slabs, and the second one's first place.
const HALF: usize = MAX_OLD / 2;
/// Parts of a slab in each of which a new place may begin.
pub(crate) const STARTS: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Bits<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Bits<WORDS> {
    const NONE: Self = Self([0; WORDS]);

    fn has(&self, bit: usize) -> bool {
        bit < WORDS * 64 && self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn set(&mut self, bit: usize) {
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn clear(&mut self, bit: usize) {
        self.0[bit / 64] &= !(1 << (bit % 64));
    }

    fn next(&self, bit: usize) -> Option<usize> {
        let mut word = bit / 64;
        let mut seen = self.0.get(word)? & (u64::MAX << (bit % 64));
        while seen == 0 {
            word += 1;
            seen = *self.0.get(word)?;
        }
        Some(word * 64 + seen.trailing_zeros() as usize)
    }

    fn last_below(&self, bit: usize) -> Option<usize> {
        let bit = bit.checked_sub(1)?;
        let mut word = bit / 64;
        let mut seen = self.0[word] & (u64::MAX >> (63 - bit % 64));
        while seen == 0 {
            word = word.checked_sub(1)?;
            seen = self.0[word];
        }
        Some(word * 64 + 63 - seen.leading_zeros() as usize)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let mut from = 0;
        core::iter::from_fn(move || {
            let bit = self.next(from)?;
            from = bit + 1;
            Some(bit)
        })
    }
}

/// A former slab: the whole of a slab of two sizes, or half.
#[derive(Clone, Copy, Debug)]
struct Part {
    old: u32,
    places: u16,
    /// The front end's name for that size.
    from: u8,
}

/// A slab of two sizes.
#[derive(Clone, Copy, Debug)]
pub struct Morph {
    /// A bit for each old place, set while its object is out.
    live: Bits<{ MAX_OLD / 64 }>,
    /// A bit for each part of the slab in which a new place begins.
    starts: Bits<{ STARTS / 64 }>,
    /// The former slabs; a missing second one has no places.
    parts: [Part; 2],
    slab: PageId,
    next: u32,
    /// Size of new objects; 0 in a free entry.
    pub(crate) new: u32,
    bytes: u32,
    part_bytes: u32,
    pub(crate) count: u16,
    off_grid: u16,
    /// The front end's name for the new size.
    to: u8,
}

// SAFETY: numbers only.
unsafe impl Zeroed for Morph {}

impl Morph {
    /// One slab of `old`, or two of half the length, to become one of `new`; nothing lives yet.
    pub(crate) fn new(slab: PageId, old: [(Geometry, u8); 2], new: (Geometry, u8)) -> Self {
        let (bytes, part_bytes) = (new.0.pages.bytes().0 as u32, old[0].0.pages.bytes().0 as u32);
        let part = |(g, from): (Geometry, u8)| Part { old: g.object, places: g.capacity, from };
        let mut parts = old.map(part);
        if part_bytes == bytes {
            parts[1].places = 0;
        }
        Self {
            live: Bits::NONE,
            starts: Bits::NONE,
            parts,
            slab,
            next: 0,
            new: new.0.object,
            bytes,
            part_bytes,
            count: 0,
            off_grid: 0,
            to: new.1,
        }
    }

    pub(crate) fn fits(old: Geometry, new: Geometry) -> bool {
        let most = if old.pages == new.pages { MAX_OLD } else { HALF };
        !old.is_single()
            && !new.is_single()
            && new.pages.0.is_power_of_two()
            && (usize::from(old.capacity) < most || usize::from(old.capacity) == most && old.tail_waste() == 0)
            && new.object as usize >= new.pages.bytes().0 / STARTS
            && SlabRecord::can_morph_to(new.object)
    }

    pub(crate) fn range(&self) -> PageRange {
        PageRange::new(self.slab, Pages((self.bytes as usize / PAGE_SIZE) as u32))
    }

    /// The slab's pages; the record of each names the entry.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageId> {
        let PageRange { first, len } = self.range();
        (0..len.0).map(move |page| PageId(first.0 + page))
    }

    /// The old place around `bytes` (even past the last): its number, the offset in it, its name.
    fn old_at(&self, bytes: u32) -> (usize, u32, u8) {
        let part = bytes / self.part_bytes;
        let (Part { old, from, .. }, bytes) = (self.parts[part as usize], bytes % self.part_bytes);
        (part as usize * HALF + (bytes / old) as usize, bytes % old, from)
    }

    fn old_bytes(&self, place: usize) -> (u32, u32) {
        let part = if self.bytes == self.part_bytes { 0 } else { place / HALF };
        let old = self.parts[part].old;
        let start = part as u32 * self.part_bytes + (place - part * HALF) as u32 * old;
        (start, start + old)
    }

    fn is_place(&self, place: usize) -> bool {
        let part = if self.bytes == self.part_bytes { 0 } else { place / HALF };
        part < 2 && place - part * HALF < self.parts[part].places.into()
    }

    /// Marks the old object that begins at `bytes` live; returns whether it was not.
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let (place, offset, _) = self.old_at(bytes as u32);
        let news = offset == 0 && self.is_place(place) && !self.live.has(place);
        if news {
            self.live.set(place);
            self.count += 1;
        }
        news
    }

    /// Marks the old object that begins at `bytes` free; returns its size if it was live.
    pub(crate) fn clear(&mut self, bytes: usize) -> Option<u32> {
        if bytes >= self.bytes as usize {
            return None;
        }
        let (place, offset, _) = self.old_at(bytes as u32);
        if offset != 0 || !self.live.has(place) {
            return None;
        }
        self.live.clear(place);
        self.count -= 1;
        let (start, end) = self.old_bytes(place);
        Some(end - start)
    }

    /// Live old objects, counted anew, and their bytes.
    pub(crate) fn count_live(&self) -> (usize, u64) {
        self.live.iter().fold((0, 0), |(n, sum), place| {
            let (start, end) = self.old_bytes(place);
            (n + 1, sum + u64::from(end - start))
        })
    }

    /// Bytes of a part in which one new place may begin, a power of two.
    fn unit(&self) -> u32 {
        self.bytes / STARTS as u32
    }

    fn unit_of(&self, bytes: u32) -> u32 {
        bytes >> self.unit().trailing_zeros()
    }

    fn start_of(&self, bit: usize) -> u32 {
        let start = bit as u32 * self.unit();
        let grid = start.next_multiple_of(self.new);
        if grid < start + self.unit() { grid } else { start }
    }

    /// The first allowed start from `bytes` on: on the grid, or aligned.
    fn allowed_from(&self, bytes: u32) -> u32 {
        let step = (1 << self.new.trailing_zeros()).max(self.unit());
        let (mut free, grid) = (bytes.next_multiple_of(step), bytes.next_multiple_of(self.new));
        // Each part records one start, and the grid comes first.
        while free < grid && self.start_of(self.unit_of(free) as usize) != free {
            free += step;
        }
        free.min(grid)
    }

    #[inline]
    pub(crate) fn starts_at(&self, bytes: usize) -> bool {
        let bit = self.unit_of(bytes as u32) as usize;
        self.starts.has(bit) && self.start_of(bit) as usize == bytes
    }

    pub(crate) fn starts(&self) -> impl Iterator<Item = usize> {
        self.starts.iter().map(|bit| self.start_of(bit) as usize)
    }

    /// Whether a new place overlaps another, a live old object, or the slab's end.
    pub(crate) fn has_overlap(&self) -> bool {
        let mut end = 0;
        let news = self.starts().any(|start| {
            let overlaps = start < core::mem::replace(&mut end, start + self.new as usize);
            overlaps || end > self.bytes as usize
        });
        let under = |place| {
            let (start, end) = self.old_bytes(place);
            self.starts().any(|new| new < end as usize && new + self.new as usize > start as usize)
        };
        news || self.live.iter().any(under)
    }

    fn is_on_grid(&self, bytes: u32) -> bool {
        bytes.is_multiple_of(self.new)
    }

    pub(crate) fn is_count_right(&self) -> bool {
        self.starts().filter(|start| !self.is_on_grid(*start as u32)).count() == self.off_grid.into()
    }

    pub(crate) fn is_regular(&self) -> bool {
        (self.count, self.off_grid) == (0, 0)
    }

    /// The start of the new place around a byte.
    fn new_around(&self, bytes: u32) -> Option<u32> {
        let mut bit = self.unit_of(bytes) as usize + 1;
        // The place of the byte's part may begin after the byte.
        loop {
            bit = self.starts.last_below(bit)?;
            let start = self.start_of(bit);
            if start <= bytes {
                return (bytes - start < self.new).then_some(start);
            }
        }
    }

    /// The free bytes around the empty `from..to`.
    fn gap(&self, from: u32, to: u32) -> (u32, u32) {
        // No place is shorter than a unit: one that ends before `from` begins in an earlier unit.
        let before = self.starts.last_below(self.unit_of(from) as usize).map(|bit| self.start_of(bit));
        let behind = self.starts.next(self.unit_of(to) as usize).map(|bit| self.start_of(bit));
        let old_before = self.live.last_below(self.old_at(from).0).map(|place| self.old_bytes(place).1);
        let old_behind = (to < self.bytes).then(|| self.live.next(self.old_at(to).0)).flatten();
        let old_behind = old_behind.map(|place| self.old_bytes(place).0);
        let start = before.map_or(0, |start| start + self.new).max(old_before.unwrap_or(0));
        (start, behind.unwrap_or(self.bytes).min(old_behind.unwrap_or(self.bytes)))
    }

    /// Cuts new places from a gap, on the grid if about as many fit; `each` gets them.
    fn fill(&mut self, (from, to): (u32, u32), mut each: impl FnMut(usize)) {
        let new = self.new;
        let grid = from.next_multiple_of(new);
        let on_grid = to.saturating_sub(grid) / new;
        let packed = {
            let next = |at: u32| Some(self.allowed_from(at + new));
            let places = core::iter::successors(Some(self.allowed_from(from)), |at| next(*at));
            places.take_while(|at| at + new <= to).count() as u32
        };
        // Places on the grid stay when the old objects are gone.
        let is_near = on_grid >= packed;
        let mut at = if is_near { grid } else { self.allowed_from(from) };
        while at + new <= to {
            self.open(at);
            each(at as usize);
            at = if is_near { at + new } else { self.allowed_from(at + new) };
        }
    }

    /// Cuts new places wherever no old object lives; returns how many.
    pub(crate) fn cut_gaps(&mut self) -> usize {
        let (mut from, mut cut) = (0, 0);
        let mut place = self.live.next(0);
        loop {
            let (start, end) = place.map_or((self.bytes, self.bytes), |place| self.old_bytes(place));
            self.fill((from, start), |_| cut += 1);
            let Some(last) = place else { return cut };
            (from, place) = (end, self.live.next(last + 1));
        }
    }

    /// Cuts new places around a freed old object; `each` gets them.
    pub(crate) fn cut_around(&mut self, bytes: usize, len: u32, each: impl FnMut(usize)) {
        self.fill(self.gap(bytes as u32, bytes as u32 + len), each);
    }

    fn open(&mut self, bytes: u32) {
        self.starts.set(self.unit_of(bytes) as usize);
        self.off_grid += u16::from(!self.is_on_grid(bytes));
    }

    /// Removes a free place.
    pub(crate) fn close(&mut self, bytes: usize) {
        self.starts.clear(self.unit_of(bytes as u32) as usize);
        self.off_grid -= u16::from(!self.is_on_grid(bytes as u32));
    }

    /// Cuts the grid places in `from..to` that overlap no other place; no old object lives.
    pub(crate) fn cut_grid(&mut self, from: usize, to: usize, mut each: impl FnMut(usize)) {
        let new = self.new as usize;
        for at in (from / new * new..to.min(self.grid_bytes())).step_by(new) {
            // Places are of one size: an overlapping one contains an end of it.
            if [at, at + new - 1].iter().all(|end| self.new_around(*end as u32).is_none()) {
                self.open(at as u32);
                each(at);
            }
        }
    }

    pub(crate) fn grid_bytes(&self) -> usize {
        (self.bytes / self.new * self.new) as usize
    }
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
        /// The name of the old size, if this is no start but an object of it began here, now back.
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

    pub(crate) fn has_room(&self) -> bool {
        self.free != 0 || (self.begun as usize) < self.entries.len().min(SlabRecord::MORPHS)
    }

    pub(crate) fn live_entries(&self) -> impl Iterator<Item = (u32, &Morph)> {
        (1..self.begun).map(|at| (at, &self.entries[at as usize])).filter(|(_, entry)| entry.new != 0)
    }

    /// Stores an entry; there is room.
    pub(crate) fn insert(&mut self, entry: Morph) -> u32 {
        let at = if self.free != 0 { self.free } else { self.begun };
        if at == self.begun {
            self.begun += 1;
        } else {
            self.free = self.entries[at as usize].next;
        }
        self.slabs += 1;
        self.old_bytes += entry.count_live().1;
        self.entries[at as usize] = entry;
        at
    }

    /// Removes the entry of a slab without live old objects: its records become ordinary.
    pub(crate) fn remove(&mut self, record: &SlabRecord, records: &impl Records) {
        let at = record.morph_entry();
        let entry = &mut self.entries[at as usize];
        debug_assert_eq!(entry.count, 0, "old objects live");
        entry.pages().for_each(|page| records.of(page).settle());
        (entry.new, entry.next) = (0, self.free);
        self.free = at;
        self.slabs -= 1;
    }

    #[inline]
    pub(crate) fn of(&self, record: &SlabRecord) -> Option<&Morph> {
        let at = record.morph_entry();
        (at != 0 && at < self.begun).then(|| &self.entries[at as usize])
    }

    pub(crate) fn of_mut(&mut self, record: &SlabRecord) -> Option<&mut Morph> {
        let at = record.morph_entry();
        (at != 0 && at < self.begun).then(|| &mut self.entries[at as usize])
    }

    /// Frees the old object at `bytes` and returns its size; `None` if it was not out.
    pub(crate) fn take_old(&mut self, record: &SlabRecord, bytes: usize) -> Option<(&mut Morph, u32)> {
        let at = record.morph_entry();
        if at == 0 || at >= self.begun {
            return None;
        }
        let entry = &mut self.entries[at as usize];
        let len = entry.clear(bytes)?;
        self.old_bytes -= u64::from(len);
        Some((entry, len))
    }

    /// The name of the size that a slab's new objects have; `None` if it is no slab of two sizes.
    pub fn class_of(&self, record: &SlabRecord) -> Option<u8> {
        self.of(record).map(|entry| entry.to)
    }

    /// The slab of two sizes around the page of a record; `None` if there is none.
    pub fn range_of(&self, record: &SlabRecord) -> Option<PageRange> {
        self.of(record).map(Morph::range)
    }

    /// The name of the size of the new place that begins there in the region, by any page's record.
    #[inline]
    pub fn new_at(&self, record: &SlabRecord, offset: usize) -> Option<u8> {
        self.of(record).filter(|e| e.starts_at(offset - e.slab.offset().0)).map(|entry| entry.to)
    }

    /// The place `bytes` behind a slab's start; `None` if it is not of two sizes, or shorter.
    pub fn look(&self, record: &SlabRecord, bytes: usize) -> Option<Place> {
        let entry = self.of(record)?;
        // 32 bits: a 64-bit division takes twice as long.
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes < entry.bytes)?;
        let (place, offset, from) = entry.old_at(bytes);
        if entry.live.has(place) {
            return Some(Place::Old { class: from, offset: offset as usize });
        }
        let new = entry.new_around(bytes);
        if new == Some(bytes) {
            return Some(Place::New { class: entry.to, offset: 0, was_old: None });
        }
        let was_old = (offset == 0 && entry.is_place(place)).then_some(from);
        Some(match new {
            Some(start) => Place::New { class: entry.to, offset: (bytes - start) as usize, was_old },
            None => Place::Nothing { was_old },
        })
    }
}

pub(crate) mod donate;
mod shape;
#[cfg(test)]
mod tests;
