//! Guests: objects of another class in a gap of a sparse slab, with a bit in the header for their
//! first and for their last 32 bytes.
//!
//! **From.** NVAlloc §5.2 changes the class of a slab at most 20 % full. Objects that stay are
//! spread: at 50 % two free neighbours are common and a free place of the new grid is rare.
//!
//! **Invariants.** *NG1* Guests overlap neither each other nor objects of the slab. *NG2* A slab
//! with old objects (`morph.rs`) takes no guest, and one with guests keeps its class.

use crate::class::{CLASSES, Class, SIZES, class_of};
use crate::error::Error;
use crate::layout::{SLAB_GUESTS, SLAB_GUESTS_BYTES, SLAB_HEADER, UNIT};
use craton_base::Medium;
use craton_base::atomic::Ordering;

/// Guests begin and end with a granule.
pub const GRANULE: u64 = 32;
pub const GRANULES: u32 = ((UNIT - SLAB_HEADER) / GRANULE) as u32;
/// The smallest guest: its first granule is not the last.
pub const LEAST: u32 = 2;
/// The largest guest.
pub const MOST: u32 = (SIZES[CLASSES - 1] as u64).div_ceil(GRANULE) as u32;
/// From this size on, guests begin with a cache line.
pub const ALIGNED_FROM: u32 = 16;
const WORDS: usize = (SLAB_GUESTS_BYTES / 8) as usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guest {
    pub first: u32,
    pub granules: u32,
}

/// A bit each.
pub type Granules = [u64; WORDS];

/// `None`: too small to be a guest.
#[inline]
pub fn granules_of(class: usize) -> Option<u32> {
    let granules = u64::from(SIZES[class]).div_ceil(GRANULE) as u32;
    (granules >= LEAST).then_some(granules)
}

pub fn class_for(granules: u32) -> usize {
    let bytes = u64::from(granules) * GRANULE;
    if bytes >= u64::from(SIZES[CLASSES - 1]) {
        return CLASSES - 1;
    }
    let class = class_of(bytes);
    if u64::from(SIZES[class]) > bytes { class - 1 } else { class }
}

impl Guest {
    /// In bytes after the slab.
    pub fn offset(self) -> u64 {
        SLAB_HEADER + u64::from(self.first) * GRANULE
    }

    pub fn bytes(self) -> u64 {
        u64::from(self.granules) * GRANULE
    }

    fn last(self) -> u32 {
        self.first + self.granules - 1
    }

    pub fn end(self) -> u32 {
        self.first + self.granules
    }

    /// The slab's objects that share bytes with the guest.
    pub fn covers(self, class: &Class) -> std::ops::Range<u32> {
        let first = class.index_within(self.offset()).unwrap_or(class.objects);
        first..class.index_within(self.offset() + self.bytes() - 1).map_or(class.objects, |last| last + 1)
    }

    /// Words and bits, of the first granule and the last.
    pub fn homes(self, slab: u64) -> [(u64, u64); 2] {
        let home = |granule: u32| (slab + SLAB_GUESTS + u64::from(granule / 64) * 8, 1 << (granule % 64));
        [home(self.first), home(self.last())]
    }

    pub fn is_allocated<M: Medium>(self, medium: &M, slab: u64) -> bool {
        // ORDERING: pairs with the release in `Medium::update`.
        self.homes(slab).into_iter().all(|(word, bit)| medium.word(word).load(Ordering::Acquire) & bit != 0)
    }
}

/// Of the bits that differ from those of `other`.
fn next(bits: &Granules, from: u32, other: u64) -> Option<u32> {
    let mut word = (from / 64) as usize;
    let mut rest = (bits.get(word)? ^ other) & u64::MAX << (from % 64);
    while rest == 0 {
        word += 1;
        rest = bits.get(word)? ^ other;
    }
    Some(word as u32 * 64 + rest.trailing_zeros())
}

fn next_set(bits: &Granules, from: u32) -> Option<u32> {
    next(bits, from, 0)
}

/// Before `end`.
fn last_set(bits: &Granules, end: u32) -> Option<u32> {
    let mut word = (end / 64) as usize;
    let mut rest = bits.get(word).map_or(0, |bits| bits & !(u64::MAX << (end % 64)));
    while rest == 0 {
        word = word.checked_sub(1)?;
        rest = bits[word];
    }
    Some(word as u32 * 64 + 63 - rest.leading_zeros())
}

fn read<M: Medium>(medium: &M, slab: u64) -> Granules {
    let at = slab + SLAB_GUESTS;
    match medium.words(at, WORDS).and_then(|words| words.first_chunk::<WORDS>()) {
        Some(words) => words.each_ref().map(|word| word.load(Ordering::Relaxed)),
        None => std::array::from_fn(|i| medium.word(at + 8 * i as u64).load(Ordering::Relaxed)),
    }
}

pub fn read_all<M: Medium>(medium: &M, slab: u64) -> Result<Vec<Guest>, Error> {
    list(&read(medium, slab), slab)
}

pub fn list(bits: &Granules, slab: u64) -> Result<Vec<Guest>, Error> {
    let mut guests = Vec::new();
    let mut from = 0;
    while let Some(first) = next_set(bits, from) {
        let last = next_set(bits, first + 1).filter(|last| *last < GRANULES && last - first < MOST);
        let last = last.ok_or(Error::Damaged { what: "guests of a slab", at: slab + SLAB_GUESTS })?;
        guests.push(Guest { first, granules: last - first + 1 });
        from = last + 1;
    }
    Ok(guests)
}

/// Of a slab. A bit for each granule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guests {
    /// Where guests begin.
    firsts: Granules,
    lasts: Granules,
    /// Objects of the slab, by mid.
    covered: Box<[u64]>,
}

impl Guests {
    pub fn new(class: &Class) -> Self {
        Self { firsts: [0; WORDS], lasts: [0; WORDS], covered: vec![0; class.stripes as usize * 8].into() }
    }

    pub fn is_empty(&self) -> bool {
        self.firsts == [0; WORDS]
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = Guest> {
        std::iter::successors(self.next_from(0), |guest| self.next_from(guest.end()))
    }

    fn with_first(&self, first: u32) -> Guest {
        let last = next_set(&self.lasts, first).unwrap_or(first);
        Guest { first, granules: last - first + 1 }
    }

    /// The first that begins with the granule, or behind.
    pub fn next_from(&self, granule: u32) -> Option<Guest> {
        next_set(&self.firsts, granule).map(|first| self.with_first(first))
    }

    /// The last that begins before the granule.
    pub fn last_before(&self, granule: u32) -> Option<Guest> {
        last_set(&self.firsts, granule).map(|first| self.with_first(first))
    }

    /// In bytes after the slab.
    pub fn beginning_at(&self, offset: u64) -> Option<Guest> {
        let inside = offset.checked_sub(SLAB_HEADER).filter(|inside| inside.is_multiple_of(GRANULE))?;
        let first = (inside / GRANULE) as u32;
        (self.firsts[(first / 64) as usize] & 1 << (first % 64) != 0).then(|| self.with_first(first))
    }

    pub fn covers(&self, mid: u32) -> bool {
        self.covered[(mid / 64) as usize] & 1 << (mid % 64) != 0
    }

    fn flip(&mut self, guest: Guest) {
        self.firsts[(guest.first / 64) as usize] ^= 1 << (guest.first % 64);
        self.lasts[(guest.last() / 64) as usize] ^= 1 << (guest.last() % 64);
    }

    /// `f` gets the mid of each newly covered object.
    pub fn add(&mut self, class: &Class, guest: Guest, mut f: impl FnMut(u32)) {
        self.flip(guest);
        for mid in guest.covers(class).map(|index| class.mid_of(index)) {
            let (word, bit) = ((mid / 64) as usize, 1 << (mid % 64));
            if self.covered[word] & bit == 0 {
                self.covered[word] |= bit;
                f(mid);
            }
        }
    }

    /// `f` gets the mid of each object no longer covered.
    pub fn remove(&mut self, class: &Class, guest: Guest, mut f: impl FnMut(u32)) {
        debug_assert!(self.beginning_at(guest.offset()) == Some(guest), "no guest {guest:?}");
        self.flip(guest);
        // Neighbours may share these.
        let before = self.last_before(guest.first).map_or(0..0, |before| before.covers(class));
        let behind = self.next_from(guest.first).map_or(0..0, |behind| behind.covers(class));
        for index in guest.covers(class).filter(|index| !before.contains(index) && !behind.contains(index)) {
            let mid = class.mid_of(index);
            self.covered[(mid / 64) as usize] &= !(1 << (mid % 64));
            f(mid);
        }
    }
}

/// Of guests, and of taken objects.
pub fn in_use(class: &Class, taken: &[u64], guests: Option<&Guests>) -> Granules {
    let mut bits = [0; WORDS];
    bits[WORDS - 1] = u64::MAX << (GRANULES % 64);
    let mut mark = |from: u64, to: u64| {
        let (first, last) = (from / GRANULE, (to - 1) / GRANULE);
        let (word, last_word) = ((first / 64) as usize, (last / 64) as usize);
        let (from, to) = (u64::MAX << (first % 64), u64::MAX >> (63 - last % 64));
        if word == last_word {
            bits[word] |= from & to;
            return;
        }
        bits[word] |= from;
        bits[word + 1..last_word].fill(u64::MAX);
        bits[last_word] |= to;
    };
    for stripe in 0..class.stripes {
        for word in stripe * 8..stripe * 8 + 8 {
            let covered = guests.map_or(0, |guests| guests.covered[word as usize]);
            let mut there = taken[word as usize] & !covered;
            while there != 0 {
                let mid = word * 64 + there.trailing_zeros();
                there &= there - 1;
                let index = class.index_of(mid);
                if index < class.objects {
                    let begin = class.offset_of(index) - SLAB_HEADER;
                    mark(begin, begin + u64::from(class.size));
                }
            }
        }
    }
    for guest in guests.into_iter().flat_map(Guests::iter) {
        let begin = guest.offset() - SLAB_HEADER;
        mark(begin, begin + guest.bytes());
    }
    bits
}

/// Calls `f` with each gap's first granule and its end.
pub fn gaps(bits: &Granules, mut f: impl FnMut(u32, u32)) {
    let mut at = 0;
    while let Some(first) = next(bits, at, u64::MAX) {
        at = next_set(bits, first).unwrap_or(GRANULES);
        f(first, at);
    }
}

#[cfg(test)]
mod tests;
