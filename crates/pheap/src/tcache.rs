//! A lane's cached objects: free in the medium, taken in their slabs (NVAlloc §5.1, figure 6).
//! Consecutive allocations come from different stripes, so that their bits lie in different lines.
//!
//! **State.** An entry is the object's offset, and its mid from bit 48 on. A guest's has bit 63,
//! and its granules there.

use crate::class::{CLASSES, Class, cached_of};
use crate::guests::{GRANULE, Guest};
use crate::layout::{OFFSET_BITS, OFFSET_MASK, SLAB_BITMAP, SLAB_HEADER, UNIT};
use craton_base::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

const GUEST: u64 = 1 << 63;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cached(u64);

impl Cached {
    #[inline]
    pub fn new(at: u64, mid: u32) -> Self {
        Self(at | u64::from(mid) << OFFSET_BITS)
    }

    #[inline]
    pub fn at(self) -> u64 {
        self.0 & OFFSET_MASK
    }

    #[inline]
    pub fn mid(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32
    }

    pub fn guest(slab: u64, guest: Guest) -> Self {
        Self(GUEST | (slab + guest.offset()) | u64::from(guest.granules) << OFFSET_BITS)
    }

    #[inline]
    pub fn is_guest(self) -> bool {
        self.0 & GUEST != 0
    }

    pub fn as_guest(self) -> Guest {
        let first = ((self.at() % UNIT - SLAB_HEADER) / GRANULE) as u32;
        Guest { first, granules: (self.0 >> OFFSET_BITS & 0x7fff) as u32 }
    }

    /// Guests go to any list, by their place.
    #[inline]
    pub fn stripe(self, class: &Class) -> u32 {
        if self.is_guest() { (self.at() / 64 % u64::from(class.stripes)) as u32 } else { self.mid() / 512 }
    }

    /// In the bitmap.
    #[inline]
    pub fn bit(self) -> (u64, u64) {
        bit_of(self.at() & !(UNIT - 1), self.mid())
    }
}

#[inline]
pub fn bit_of(slab: u64, mid: u32) -> (u64, u64) {
    (slab + SLAB_BITMAP + u64::from(mid / 64) * 8, 1 << (mid % 64))
}

/// Before each class's lists: 8, with a few entries more for rounding up.
const fn begins() -> [u32; CLASSES + 1] {
    let mut begins = [0; CLASSES + 1];
    let mut class = 0;
    while class < CLASSES {
        begins[class + 1] = begins[class] + cached_of(class) + 8;
        class += 1;
    }
    begins
}

const BEGINS: [u32; CLASSES + 1] = begins();

struct Lists {
    cursor: AtomicU32,
    lens: [AtomicU32; 8],
}

pub struct Tcache {
    lists: [Lists; CLASSES],
    entries: OnceLock<Box<[AtomicU64]>>,
}

impl Tcache {
    pub fn new() -> Self {
        let lists = || Lists { cursor: AtomicU32::new(0), lens: [const { AtomicU32::new(0) }; 8] };
        Self { lists: std::array::from_fn(|_| lists()), entries: OnceLock::new() }
    }

    fn entries(&self) -> &[AtomicU64] {
        self.entries.get_or_init(|| (0..BEGINS[CLASSES]).map(|_| AtomicU64::new(0)).collect())
    }

    /// From the stripe behind the last object's, if that has one.
    #[inline]
    pub fn pop(&self, number: usize, class: &Class) -> Option<Cached> {
        let lists = &self.lists[number];
        let mut stripe = lists.cursor.load(Ordering::Relaxed);
        for _ in 0..class.stripes {
            let len = lists.lens[stripe as usize].load(Ordering::Relaxed);
            let next = if stripe + 1 >= class.stripes { 0 } else { stripe + 1 };
            if len > 0 {
                lists.lens[stripe as usize].store(len - 1, Ordering::Relaxed);
                lists.cursor.store(next, Ordering::Relaxed);
                let at = BEGINS[number] + stripe * class.cached + len - 1;
                return Some(Cached(self.entries()[at as usize].load(Ordering::Relaxed)));
            }
            stripe = next;
        }
        None
    }

    pub fn room(&self, number: usize, class: &Class, stripe: u32) -> u32 {
        class.cached - self.lists[number].lens[stripe as usize].load(Ordering::Relaxed)
    }

    /// `false`: the list is full.
    #[inline]
    pub fn push(&self, number: usize, class: &Class, object: Cached) -> bool {
        let stripe = object.stripe(class);
        let len = self.lists[number].lens[stripe as usize].load(Ordering::Relaxed);
        let capacity = class.cached;
        if len >= capacity {
            return false;
        }
        let at = BEGINS[number] + stripe * capacity + len;
        self.entries()[at as usize].store(object.0, Ordering::Relaxed);
        self.lists[number].lens[stripe as usize].store(len + 1, Ordering::Relaxed);
        true
    }

    /// Up to `most` of the oldest objects.
    pub fn drain(&self, number: usize, class: &Class, stripe: u32, most: u32, into: &mut Vec<Cached>) {
        let len = self.lists[number].lens[stripe as usize].load(Ordering::Relaxed);
        let begin = (BEGINS[number] + stripe * class.cached) as usize;
        let list = &self.entries()[begin..begin + len as usize];
        let removed = len.min(most) as usize;
        into.extend(list[..removed].iter().map(|entry| Cached(entry.load(Ordering::Relaxed))));
        for (to, from) in (removed..list.len()).enumerate() {
            list[to].store(list[from].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.lists[number].lens[stripe as usize].store(len - removed as u32, Ordering::Relaxed);
    }

    pub fn list(&self, number: usize, class: &Class) -> Vec<Cached> {
        let mut all = Vec::new();
        if self.entries.get().is_some() {
            for stripe in 0..class.stripes {
                let len = self.lists[number].lens[stripe as usize].load(Ordering::Relaxed);
                let begin = (BEGINS[number] + stripe * class.cached) as usize;
                let list = &self.entries()[begin..begin + len as usize];
                all.extend(list.iter().map(|entry| Cached(entry.load(Ordering::Relaxed))));
            }
        }
        all
    }
}
