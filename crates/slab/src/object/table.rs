//! Finds the slab of an address, and rejects foreign pointers without reading there (Bonwick94
//! §3.2.3: a hash table from buffers).
//!
//! A slab lies on one or two grains of 2^k bytes. An entry is the record's address; the lowest bit
//! marks the second grain. The first 32 places are inline.
//! **Unsafe.** Follows entries to records; stores entries in the supplier's pages.

use super::layout::ObjectLayout;
use super::record::{Record, Slab};
use super::supply::PageSupplier;
use core::ptr::{self, NonNull};

const OWN_BITS: u32 = 5;
pub(super) const OWN: usize = 1 << OWN_BITS;
/// 2^64 / the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: usize = 1;

#[derive(Debug)]
pub(super) struct SlabTable {
    pub(super) own: [usize; OWN],
    pub(super) far: *mut usize,
    /// log2 of places / inline ones.
    pub(super) more_bits: u32,
    count: u32,
}

impl SlabTable {
    pub(super) const EMPTY: Self = Self { own: [0; OWN], far: ptr::null_mut(), more_bits: 0, count: 0 };

    fn bits(&self) -> u32 {
        OWN_BITS + self.more_bits
    }

    pub(super) fn bytes(&self) -> usize {
        if self.far.is_null() { 0 } else { bytes_of(self.more_bits) }
    }

    #[inline]
    fn entry(&self, place: usize) -> usize {
        if self.far.is_null() {
            return self.own[place % OWN];
        }
        // SAFETY: the pages hold all places.
        unsafe { *self.far.add(place) }
    }

    fn set(&mut self, place: usize, entry: usize) {
        if self.far.is_null() {
            self.own[place % OWN] = entry;
            return;
        }
        // SAFETY: the pages hold all places.
        unsafe { *self.far.add(place) = entry }
    }

    #[inline]
    fn home(&self, grain: usize) -> usize {
        ((grain as u64).wrapping_mul(GOLDEN) >> (64 - self.bits())) as usize
    }

    #[inline]
    fn mask(&self) -> usize {
        (1 << self.bits()) - 1
    }

    #[inline]
    pub(super) fn find(&self, layout: &ObjectLayout, address: usize) -> Option<Slab> {
        let place = self.home(address >> layout.grain_shift);
        let slab = slab_of(self.entry(place))?;
        if slab.covers(layout, address) { Some(slab) } else { self.find_behind(layout, address, place) }
    }

    #[cold]
    fn find_behind(&self, layout: &ObjectLayout, address: usize, mut place: usize) -> Option<Slab> {
        loop {
            place = (place + 1) & self.mask();
            let slab = slab_of(self.entry(place))?;
            if slab.covers(layout, address) {
                return Some(slab);
            }
        }
    }

    fn grains(layout: &ObjectLayout, slab: Slab) -> (usize, Option<usize>) {
        let (first, shift) = (slab.address() as usize, layout.grain_shift);
        let (a, b) = (first >> shift, (first + layout.bytes() - 1) >> shift);
        (a, (a != b).then_some(b))
    }

    /// `false`: refused, unchanged.
    pub(super) fn reserve(&mut self, layout: &ObjectLayout, supplier: &mut impl PageSupplier) -> bool {
        let (places, count) = (1 << self.bits(), self.count as usize + 2);
        let more = if self.far.is_null() { first_more(layout) } else { self.more_bits + 1 };
        // Grows at 3/4; where memory is refused, serves up to 7/8.
        count * 4 <= places * 3 || self.resize(layout, more, supplier) || count * 8 <= places * 7
    }

    pub(super) fn shrink(&mut self, layout: &ObjectLayout, supplier: &mut impl PageSupplier) {
        if self.far.is_null() || self.count as usize * 8 > 1 << self.bits() {
            return;
        }
        if self.more_bits > first_more(layout) {
            self.resize(layout, self.more_bits - 1, supplier);
        }
        if self.count as usize * 2 <= OWN {
            self.resize(layout, 0, supplier);
        }
    }

    fn resize(&mut self, layout: &ObjectLayout, more_bits: u32, supplier: &mut impl PageSupplier) -> bool {
        let mut new = Self { more_bits, ..Self::EMPTY };
        if more_bits > 0 {
            let Some(far) = supplier.get(bytes_of(more_bits), layout.page_bytes()) else { return false };
            new.far = far.cast();
            // SAFETY: the pages hold all places.
            unsafe { new.far.write_bytes(0, OWN << more_bits) };
        }
        let old = core::mem::replace(self, new);
        for entry in (0..=old.mask()).map(|place| old.entry(place)) {
            if let Some(slab) = slab_of(entry) {
                self.put(Self::grain_of(layout, slab, entry), entry);
            }
        }
        if !old.far.is_null() {
            // SAFETY: all entries have moved.
            unsafe { supplier.put(old.far.cast(), old.bytes()) };
        }
        true
    }

    fn grain_of(layout: &ObjectLayout, slab: Slab, entry: usize) -> usize {
        let (first, last) = Self::grains(layout, slab);
        if entry & SECOND == 0 { first } else { last.unwrap_or(first) }
    }

    fn put(&mut self, grain: usize, entry: usize) {
        let mut place = self.home(grain);
        while self.entry(place) != 0 {
            place = (place + 1) & self.mask();
        }
        self.set(place, entry);
        self.count += 1;
    }

    fn entries_of(layout: &ObjectLayout, slab: Slab) -> impl Iterator<Item = (usize, usize)> {
        let ((first, last), entry) = (Self::grains(layout, slab), slab.0.as_ptr() as usize);
        [(first, entry)].into_iter().chain(last.map(|last| (last, entry | SECOND)))
    }

    /// After [`SlabTable::reserve`].
    pub(super) fn insert(&mut self, layout: &ObjectLayout, slab: Slab) {
        Self::entries_of(layout, slab).for_each(|(grain, entry)| self.put(grain, entry));
    }

    pub(super) fn remove(&mut self, layout: &ObjectLayout, slab: Slab) {
        Self::entries_of(layout, slab).for_each(|(grain, entry)| self.remove_entry(layout, grain, entry));
    }

    fn remove_entry(&mut self, layout: &ObjectLayout, grain: usize, entry: usize) {
        let mut hole = self.home(grain);
        while self.entry(hole) != entry {
            debug_assert_ne!(self.entry(hole), 0, "the slab is in the table");
            hole = (hole + 1) & self.mask();
        }
        // Entries that belong at or before the hole move up.
        let mut place = hole;
        loop {
            place = (place + 1) & self.mask();
            let entry = self.entry(place);
            let Some(slab) = slab_of(entry) else { break };
            let home = self.home(Self::grain_of(layout, slab, entry));
            let (from_home, from_hole) =
                (place.wrapping_sub(home) & self.mask(), place.wrapping_sub(hole) & self.mask());
            if from_home >= from_hole {
                self.set(hole, entry);
                hole = place;
            }
        }
        self.set(hole, 0);
        self.count -= 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slab> + '_ {
        let entries = (0..=self.mask()).map(|place| self.entry(place));
        entries.filter(|entry| entry & SECOND == 0).filter_map(slab_of)
    }

    pub(super) fn entries(layout: &ObjectLayout, slab: Slab) -> u32 {
        Self::entries_of(layout, slab).count() as u32
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

fn bytes_of(more_bits: u32) -> usize {
    (OWN << more_bits) * size_of::<usize>()
}

fn first_more(layout: &ObjectLayout) -> u32 {
    (layout.page_bytes() / size_of::<usize>()).ilog2() - OWN_BITS
}

#[inline]
fn slab_of(entry: usize) -> Option<Slab> {
    NonNull::new((entry & !SECOND) as *mut Record).map(Slab)
}
