//! Entries of slabs that hold objects of two sizes.
//!
//! Several neighbouring slabs with few live objects may become one slab of another size, or one
//! several. New places fill the gaps between live old objects; an entry for each page lists both.
//! **From.** NVAlloc §5.2 keeps new places on the new size's grid. Ours begin anywhere in a gap:
//! twice the room where half of the old objects live. So the slab must *settle* after the last old
//! object: freed places off the grid close, places on the grid open, and the last makes the slab
//! ordinary.
//! **Units.** Bytes from the slab's start; a bit stands for 16 bytes. An old object across the
//! border of two new slabs counts in both, in the second as its *head*.
//! **Threads.** Written under its lock, taken after the slab's cache lock. Where new places begin
//! may be read without a lock: for a live object of either size the answer stays.
//! **Unsafe.** Declares that zeros are a valid entry.

use crate::record::{Records, SlabRecord};
// Not the models' kind: the lock orders all but live objects' starts, which stay.
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use craton_base::{PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages, Table, Zeroed};

const UNIT: u32 = 16;
const UNITS: u32 = PAGE_SIZE as u32 / UNIT;
const WORDS: usize = UNITS as usize / 64;

type Bits = [AtomicU64; WORDS];

#[derive(Debug)]
#[repr(C)]
pub struct Morph {
    starts: Bits,
    live: Bits,
    /// In a free entry, the next free one.
    slab: AtomicU32,
    new: AtomicU32,
    /// 0: the page was free.
    old: AtomicU32,
    origin: AtomicU32,
    /// Bytes of an object of the slab before. As `count` and `off_grid`, in a slab's first page.
    head: AtomicU32,
    places: AtomicU16,
    count: AtomicU16,
    off_grid: AtomicU16,
    from: AtomicU8,
    to: AtomicU8,
    pages: AtomicU8,
}

// SAFETY: atomics of zero are valid.
unsafe impl Zeroed for Morph {}

const _: () = assert!(size_of::<Morph>() == 160);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Old {
    pub(crate) object: u32,
    pub(crate) places: u16,
    pub(crate) origin: PageId,
    pub(crate) from: u8,
}

impl Old {
    pub(crate) const NONE: Self = Self { object: 0, places: 0, origin: PageId(0), from: 0 };
}

impl Morph {
    fn begin(&self, slab: PageRange, new: u32, to: u8, old: Old) {
        for bits in [&self.starts, &self.live] {
            bits.iter().for_each(|word| word.store(0, Relaxed));
        }
        self.slab.store(slab.first.0, Relaxed);
        self.pages.store(slab.len.0 as u8, Relaxed);
        self.old.store(old.object, Relaxed);
        self.origin.store(old.origin.0, Relaxed);
        self.head.store(0, Relaxed);
        self.places.store(old.places, Relaxed);
        self.count.store(0, Relaxed);
        self.off_grid.store(0, Relaxed);
        self.from.store(old.from, Relaxed);
        self.to.store(to, Relaxed);
        self.new.store(new, Relaxed);
    }

    #[inline(always)]
    fn starts_at(&self, offset: usize) -> bool {
        let unit = offset % PAGE_SIZE / UNIT as usize;
        offset.is_multiple_of(UNIT as usize) && self.starts[unit / 64].load(Relaxed) & 1 << (unit % 64) != 0
    }
}

fn change(number: &AtomicU16, by: i16) {
    number.store(number.load(Relaxed).wrapping_add_signed(by), Relaxed);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Starts,
    Live,
}

pub(crate) struct Mixed<'a, R> {
    entries: &'a Table<Morph>,
    records: &'a R,
    head: &'a Morph,
    pub(crate) first: PageId,
    pub(crate) new: u32,
    pub(crate) bytes: u32,
}

impl<R: Records> Mixed<'_, R> {
    fn page(&self, page: u32) -> &Morph {
        if page == 0 {
            return self.head;
        }
        &self.entries[self.records.of(PageId(self.first.0 + page)).morph_entry() as usize]
    }

    fn word(&self, of: Of, unit: u32) -> &AtomicU64 {
        let page = self.page(unit / UNITS);
        let bits = if of == Of::Starts { &page.starts } else { &page.live };
        &bits[(unit % UNITS / 64) as usize]
    }

    fn has(&self, of: Of, unit: u32) -> bool {
        self.word(of, unit).load(Relaxed) >> (unit % 64) & 1 == 1
    }

    fn flip(&self, of: Of, unit: u32) {
        let word = self.word(of, unit);
        word.store(word.load(Relaxed) ^ 1 << (unit % 64), Relaxed);
    }

    fn next(&self, of: Of, bytes: u32) -> Option<u32> {
        let mut unit = bytes / UNIT;
        while unit < self.bytes / UNIT {
            let seen = self.word(of, unit).load(Relaxed) & (u64::MAX << (unit % 64));
            if seen != 0 {
                return Some(((unit & !63) + seen.trailing_zeros()) * UNIT);
            }
            unit = (unit & !63) + 64;
        }
        None
    }

    fn last_before(&self, of: Of, bytes: u32) -> Option<u32> {
        let mut end = bytes.div_ceil(UNIT);
        while end > 0 {
            let unit = (end - 1) & !63;
            let seen = self.word(of, unit).load(Relaxed) & (u64::MAX >> (63 - (end - 1) % 64));
            if seen != 0 {
                return Some((unit + 63 - seen.leading_zeros()) * UNIT);
            }
            end = unit;
        }
        None
    }

    fn iter(&self, of: Of) -> impl Iterator<Item = u32> {
        core::iter::successors(self.next(of, 0), move |at| self.next(of, at + UNIT))
    }

    pub(crate) fn old_end(&self, bytes: u32) -> u32 {
        bytes + self.page(bytes >> PAGE_SHIFT).old.load(Relaxed)
    }

    pub(crate) fn range(&self) -> PageRange {
        PageRange::new(self.first, Pages(self.bytes >> PAGE_SHIFT))
    }

    pub(crate) fn count(&self) -> u16 {
        self.head.count.load(Relaxed)
    }

    pub(crate) fn head(&self) -> u32 {
        self.head.head.load(Relaxed)
    }

    pub(crate) fn set_head(&self, bytes: u32) {
        self.head.head.store(bytes, Relaxed);
        change(&self.head.count, if bytes > 0 { 1 } else { -1 });
    }

    pub(crate) fn flip_live(&self, bytes: u32, by: i16) {
        self.flip(Of::Live, bytes / UNIT);
        change(&self.head.count, by);
    }

    pub(crate) fn is_live(&self, bytes: u32) -> bool {
        bytes < self.bytes && bytes.is_multiple_of(UNIT) && self.has(Of::Live, bytes / UNIT)
    }

    pub(crate) fn clear(&self, bytes: u32) -> Option<u32> {
        self.is_live(bytes).then(|| {
            self.flip_live(bytes, -1);
            self.old_end(bytes)
        })
    }

    pub(crate) fn count_live(&self) -> (usize, u64) {
        self.iter(Of::Live).fold((0, 0), |(n, sum), at| (n + 1, sum + u64::from(self.old_end(at) - at)))
    }

    pub(crate) fn starts_at(&self, bytes: u32) -> bool {
        bytes < self.bytes && bytes.is_multiple_of(UNIT) && self.has(Of::Starts, bytes / UNIT)
    }

    pub(crate) fn starts(&self) -> impl Iterator<Item = u32> {
        self.iter(Of::Starts)
    }

    pub(crate) fn has_overlap(&self) -> bool {
        let mut end = self.head();
        let news = self.starts().any(|start| {
            let overlaps = start < core::mem::replace(&mut end, start + self.new);
            overlaps || end > self.bytes
        });
        let under = |start: u32| self.starts().any(|new| new < self.old_end(start) && new + self.new > start);
        news || self.iter(Of::Live).any(under)
    }

    fn is_on_grid(&self, bytes: u32) -> bool {
        bytes.is_multiple_of(self.new)
    }

    pub(crate) fn is_count_right(&self) -> bool {
        let off_grid = self.starts().filter(|start| !self.is_on_grid(*start)).count();
        off_grid == usize::from(self.head.off_grid.load(Relaxed))
    }

    pub(crate) fn is_regular(&self) -> bool {
        (self.count(), self.head.off_grid.load(Relaxed)) == (0, 0)
    }

    fn new_around(&self, bytes: u32) -> Option<u32> {
        self.last_before(Of::Starts, bytes + 1).filter(|start| bytes - start < self.new)
    }

    fn gap(&self, from: u32, to: u32) -> (u32, u32) {
        let before = self.last_before(Of::Starts, from).map_or(0, |start| start + self.new);
        let old_before = self.last_before(Of::Live, from).map_or(0, |start| self.old_end(start));
        let behind = self.next(Of::Starts, to).unwrap_or(self.bytes);
        let old_behind = self.next(Of::Live, to).unwrap_or(self.bytes);
        (before.max(old_before).max(self.head()), behind.min(old_behind))
    }

    /// On the grid if as many fit there: these places stay when the old objects are gone.
    fn fill(&self, (from, to): (u32, u32), mut each: impl FnMut(u32)) {
        let fit = |at: u32| to.saturating_sub(at) / self.new;
        let (grid, packed) = (from.next_multiple_of(self.new), from.next_multiple_of(1 << self.new.trailing_zeros()));
        let first = if fit(grid) >= fit(packed) { grid } else { packed };
        for place in 0..fit(first) {
            let at = first + place * self.new;
            self.open(at);
            each(at);
        }
    }

    pub(crate) fn cut_gaps(&self) -> usize {
        let (mut from, mut cut) = (self.head().min(self.bytes), 0);
        loop {
            let next = self.next(Of::Live, from);
            self.fill((from, next.unwrap_or(self.bytes)), |_| cut += 1);
            let Some(old) = next else { return cut };
            from = self.old_end(old).min(self.bytes);
        }
    }

    pub(crate) fn cut_around(&self, from: u32, to: u32, each: impl FnMut(u32)) {
        self.fill(self.gap(from, to.min(self.bytes)), each);
    }

    fn open(&self, bytes: u32) {
        self.flip(Of::Starts, bytes / UNIT);
        change(&self.head.off_grid, i16::from(!self.is_on_grid(bytes)));
    }

    pub(crate) fn close(&self, bytes: u32) {
        self.flip(Of::Starts, bytes / UNIT);
        change(&self.head.off_grid, -i16::from(!self.is_on_grid(bytes)));
    }

    pub(crate) fn cut_grid(&self, from: u32, to: u32, mut each: impl FnMut(u32)) {
        let grid = from / self.new * self.new;
        let mut end = self.last_before(Of::Starts, grid).map_or(0, |start| start + self.new);
        let mut next = self.next(Of::Starts, grid);
        for at in (grid..to.min(self.grid_bytes())).step_by(self.new as usize) {
            while let Some(start) = next.filter(|start| *start < at + self.new) {
                (end, next) = (start + self.new, self.next(Of::Starts, start + UNIT));
            }
            // Only the last place before may overlap it.
            if end <= at {
                self.open(at);
                each(at);
            }
        }
    }

    pub(crate) fn grid_bytes(&self) -> u32 {
        self.bytes / self.new * self.new
    }

    /// Name, size, and bytes before the slab of the old object across its start.
    pub(crate) fn across(&self) -> Option<(u8, u32, u32)> {
        let mut before = 0;
        for page in (0..self.first.0).rev() {
            let entry = self.records.of(PageId(page)).morph_entry();
            if entry == 0 {
                return None;
            }
            let entry = &self.entries[entry as usize];
            let last = entry.live.iter().enumerate().rev().find(|(_, word)| word.load(Relaxed) != 0);
            let Some((word, bits)) = last else {
                before += PAGE_SIZE as u32;
                continue;
            };
            let unit = word as u32 * 64 + 63 - bits.load(Relaxed).leading_zeros();
            return Some((entry.from.load(Relaxed), entry.old.load(Relaxed), before + (UNITS - unit) * UNIT));
        }
        None
    }

    fn look(&self, bytes: u32) -> Place {
        let offset = |start: u32| (bytes - start) as usize;
        if bytes < self.head()
            && let Some((class, _, before)) = self.across()
        {
            return Place::Old { class, offset: (before + bytes) as usize };
        }
        if let Some(start) = self.last_before(Of::Live, bytes + 1)
            && bytes < self.old_end(start)
        {
            let class = self.page(start >> PAGE_SHIFT).from.load(Relaxed);
            return Place::Old { class, offset: offset(start) };
        }
        let (new, to) = (self.new_around(bytes), self.head.to.load(Relaxed));
        if new == Some(bytes) {
            return Place::New { class: to, offset: 0, was_old: None };
        }
        let page = self.page(bytes >> PAGE_SHIFT);
        let (old, origin) = (page.old.load(Relaxed) as usize, PageId(page.origin.load(Relaxed)));
        let is_start = |at: usize| at.is_multiple_of(old) && at / old < page.places.load(Relaxed).into();
        let was_old = old > 0 && is_start(self.first.offset().0 + bytes as usize - origin.offset().0);
        let was_old = was_old.then(|| page.from.load(Relaxed));
        match new {
            Some(start) => Place::New { class: to, offset: offset(start), was_old },
            None => Place::Nothing { was_old },
        }
    }
}

/// Classes are the front end's names, offsets from the object's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Old {
        class: u8,
        offset: usize,
    },
    New {
        class: u8,
        offset: usize,
        /// The class of a freed old object that began here, where no new one does.
        was_old: Option<u8>,
    },
    Nothing {
        was_old: Option<u8>,
    },
}

pub struct Morphs {
    entries: Table<Morph>,
    /// Ever used; the first never is.
    begun: u32,
    /// 0: no freed entry.
    free: u32,
    used: u32,
    slabs: u32,
    pub(crate) old_bytes: u64,
}

impl Morphs {
    pub const MOST: usize = SlabRecord::MORPHS;

    pub const EMPTY: Self = Self { entries: Table::EMPTY, begun: 0, free: 0, used: 0, slabs: 0, old_bytes: 0 };

    pub fn new(entries: Table<Morph>) -> Self {
        Self { entries, begun: 1, free: 0, used: 0, slabs: 0, old_bytes: 0 }
    }

    pub fn is_unset(&self) -> bool {
        self.begun == 0
    }

    pub fn slabs(&self) -> u32 {
        self.slabs
    }

    pub fn old_bytes(&self) -> u64 {
        self.old_bytes
    }

    pub(crate) fn has_room(&self, pages: Pages) -> bool {
        ((self.used + pages.0) as usize) < self.entries.len().min(SlabRecord::MORPHS)
    }

    pub(crate) fn firsts(&self, records: &impl Records) -> impl Iterator<Item = PageId> {
        let all = (1..self.begun).map(|at| (at, &self.entries[at as usize]));
        let used = all.filter(|(_, entry)| entry.new.load(Relaxed) != 0);
        let firsts = used.map(|(at, entry)| (at, PageId(entry.slab.load(Relaxed))));
        firsts.filter(|(at, first)| records.of(*first).morph_entry() == *at).map(|(_, first)| first)
    }

    pub(crate) fn add_page(
        &mut self,
        page: PageId,
        slab: PageRange,
        (new, to): (u32, u8),
        old: Old,
        records: &impl Records,
    ) {
        let at = if self.free != 0 { self.free } else { self.begun };
        let entry = &self.entries[at as usize];
        if at == self.begun {
            self.begun += 1;
        } else {
            self.free = entry.slab.load(Relaxed);
        }
        self.used += 1;
        self.slabs += u32::from(page == slab.first);
        entry.begin(slab, new, to, old);
        records.of(page).set_morph(at, new);
    }

    pub(crate) fn remove(&mut self, range: PageRange, records: &impl Records) {
        for page in range.first.0..range.first.0 + range.len.0 {
            let record = records.of(PageId(page));
            let at = record.morph_entry();
            let entry = &self.entries[at as usize];
            entry.new.store(0, Relaxed);
            entry.slab.store(self.free, Relaxed);
            record.settle();
            self.free = at;
            self.used -= 1;
        }
        self.slabs -= 1;
    }

    #[inline]
    fn entry(&self, record: &SlabRecord) -> Option<&Morph> {
        let at = record.morph_entry();
        (at != 0 && at < self.begun).then(|| &self.entries[at as usize])
    }

    pub(crate) fn slab<'a, R: Records>(&'a self, first: PageId, records: &'a R) -> Mixed<'a, R> {
        let head = &self.entries[records.of(first).morph_entry() as usize];
        let (new, bytes) = (head.new.load(Relaxed), u32::from(head.pages.load(Relaxed)) << PAGE_SHIFT);
        Mixed { entries: &self.entries, records, head, first, new, bytes }
    }

    /// The new objects' class; `None`: not a slab of two sizes.
    pub fn class_of(&self, record: &SlabRecord) -> Option<u8> {
        self.entry(record).map(|entry| entry.to.load(Relaxed))
    }

    pub fn range_of(&self, record: &SlabRecord) -> Option<PageRange> {
        let range = |entry: &Morph| (PageId(entry.slab.load(Relaxed)), Pages(entry.pages.load(Relaxed).into()));
        self.entry(record).map(range).map(|(first, pages)| PageRange::new(first, pages))
    }

    /// `offset`: from the region's start.
    pub fn look(&self, offset: usize, records: &impl Records) -> Option<Place> {
        let first = self.range_of(records.of(PageId((offset >> PAGE_SHIFT) as u32)))?.first;
        Some(self.slab(first, records).look((offset - first.offset().0) as u32))
    }

    pub fn starts(&self) -> Starts {
        Starts(&raw const self.entries[0])
    }
}

/// For readers without the lock.
#[derive(Clone, Copy)]
pub struct Starts(pub *const Morph);

impl Starts {
    /// `offset`: from the region's start. Returns units of 16 bytes. Right for live objects.
    /// # Safety
    /// There are [`Morphs::MOST`] entries, or all that records name.
    #[inline(always)]
    pub unsafe fn new_at(self, record: &SlabRecord, offset: usize) -> Option<usize> {
        let (at, units) = record.entry_and_units();
        // SAFETY: the entry exists, and is atomic. The first, which other slabs name, has no bit
        // set.
        unsafe { &*self.0.add(at) }.starts_at(offset).then_some(units)
    }
}

pub(crate) mod donate;
mod shape;
#[cfg(test)]
mod tests;
