//! An arena: slabs in DRAM, by class and occupancy, under one lock. The fullest serve first, so
//! that sparse ones drain and return to the extents, or serve another class.
//!
//! **Invariants.** *A1* `free` of a slab is the number of its zero bits. *A2* A slab with free
//! objects is in the list of its class and `level`; a full one in none.

mod gaps;
mod list;

use crate::class::{CLASSES, Class};
use crate::guests::{GRANULES, Guests};
use crate::morph::Old;
use crate::slab::unused_bits;
use crate::tcache::{Cached, Tcache};
use list::{Kind, Link, Linked, Lists, UNLISTED};

/// Eighths of free objects, and empty slabs.
const LEVELS: usize = 9;
const EMPTY: usize = 8;
/// At most a quarter taken, the sparsest first.
const SPARSE: [usize; 2] = [7, 6];
/// That a class keeps, besides an eighth of its slabs: a slab costs a fence.
const KEPT: u32 = 2;
/// Units of occupancy.
const SHARES: u32 = 1024;

pub struct Slab {
    /// 0 for a vacant entry.
    pub at: u64,
    pub class: usize,
    pub free: u32,
    /// Of this class.
    pub least_free: u32,
    /// By mid: allocated, cached or covered.
    pub taken: Box<[u64]>,
    /// Of the former class.
    pub old: Option<Box<Old>>,
    pub guests: Option<Box<Guests>>,
    /// Until this epoch is settled, redo lines may name the table.
    pub table_epoch: u64,
    /// Most granules of a gap that the arena's index may not have.
    gap: u32,
    links: [Link; 2],
}

fn list_of(number: usize, level: usize) -> usize {
    if level == UNLISTED { UNLISTED } else { number * LEVELS + level }
}

impl Linked for Slab {
    fn links(&mut self) -> &mut [Link; 2] {
        &mut self.links
    }

    fn link(&self, kind: Kind) -> Link {
        self.links[kind as usize]
    }
}

impl Slab {
    fn level(&self) -> usize {
        let list = self.links[Kind::Level as usize].list;
        if list == UNLISTED { UNLISTED } else { list % LEVELS }
    }

    fn level_for(&self, objects: u32) -> usize {
        match self.free {
            0 => UNLISTED,
            // A guest behind the last object covers none.
            free if free >= objects && self.old.is_none() && self.guests.is_none() => EMPTY,
            free => ((free - 1) * 8 / objects) as usize,
        }
    }

    pub fn is_taken(&self, mid: u32) -> bool {
        self.taken[(mid / 64) as usize] & 1 << (mid % 64) != 0
    }

    pub fn is_covered(&self, class: &Class, index: u32) -> bool {
        let mid = class.mid_of(index);
        self.old.as_ref().is_some_and(|old| old.covers(index))
            || self.guests.as_ref().is_some_and(|guests| guests.covers(mid))
    }
}

pub struct Arena {
    pub slabs: Vec<Slab>,
    vacant: Vec<u32>,
    levels: Lists,
    /// By class.
    pub count: Box<[u32; CLASSES]>,
    empty: Box<[u32; CLASSES]>,
    /// Slabs by `gap`.
    gaps: Lists,
    index: gaps::Index,
    /// Whether slabs may have guests.
    hosts: bool,
    /// Changes when a slab may have become sparse enough to change its class.
    pub sparser: u64,
}

impl Arena {
    pub fn new(hosts: bool) -> Self {
        Self {
            slabs: Vec::new(),
            vacant: Vec::new(),
            levels: Lists::new(Kind::Level, CLASSES * LEVELS),
            count: Box::new([0; CLASSES]),
            empty: Box::new([0; CLASSES]),
            gaps: Lists::new(Kind::Gap, gaps::GAPS),
            index: gaps::Index::new(),
            hosts,
            sparser: 0,
        }
    }

    /// `taken` has `free` zero bits.
    pub fn insert(&mut self, at: u64, number: usize, taken: Box<[u64]>, free: u32) -> usize {
        let slab = Slab {
            at,
            class: number,
            free,
            least_free: free,
            taken,
            old: None,
            guests: None,
            table_epoch: 0,
            gap: GRANULES,
            links: [Link::NEW; 2],
        };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.slabs[index as usize] = slab;
                index as usize
            }
            None => {
                self.slabs.push(slab);
                self.slabs.len() - 1
            }
        };
        self.count[number] += 1;
        index
    }

    pub fn remove(&mut self, index: usize) {
        self.unlink(index);
        self.gaps.relist(&mut self.slabs, index, UNLISTED);
        let slab = &mut self.slabs[index];
        self.count[slab.class] -= 1;
        slab.at = 0;
        slab.taken = Box::default();
        slab.old = None;
        slab.guests = None;
        self.vacant.push(index as u32);
    }

    pub fn relist(&mut self, index: usize, objects: u32) {
        let level = self.slabs[index].level_for(objects);
        self.sparser += u64::from(SPARSE.contains(&level));
        self.set_level(index, level);
    }

    pub fn unlink(&mut self, index: usize) {
        self.set_level(index, UNLISTED);
    }

    fn set_level(&mut self, index: usize, level: usize) {
        let (old, class) = (self.slabs[index].level(), self.slabs[index].class);
        if level != old {
            self.empty[class] += u32::from(level == EMPTY);
            self.empty[class] -= u32::from(old == EMPTY);
            self.levels.relist(&mut self.slabs, index, list_of(class, level));
        }
    }

    pub fn first(&self, number: usize, level: usize) -> Option<usize> {
        self.levels.first(list_of(number, level))
    }

    /// Into a lane's cache; returns the number of objects.
    pub fn refill(&mut self, number: usize, class: &Class, tcache: &Tcache, most: u32) -> u32 {
        let mut moved = 0;
        let mut found = Vec::with_capacity(most as usize);
        for level in 0..LEVELS {
            while moved < most
                && let Some(index) = self.first(number, level)
            {
                let slab = &mut self.slabs[index];
                take(slab, class, most - moved, |stripe| tcache.room(number, class, stripe), &mut found);
                if found.is_empty() {
                    return moved;
                }
                slab.free -= found.len() as u32;
                slab.least_free = slab.least_free.min(slab.free);
                moved += found.len() as u32;
                // The cache pops from the end: the lowest address goes last.
                for object in found.drain(..).rev() {
                    let pushed = tcache.push(number, class, object);
                    debug_assert!(pushed, "a refill overflows a list");
                }
                self.relist(index, class.objects);
            }
        }
        moved
    }

    /// From a fuller slab than `than`, if that has at least a quarter free.
    pub fn take_fuller(&mut self, than: usize, objects: u32, number: usize, class: &Class) -> Option<Cached> {
        let share = |free: u32, objects: u32| free * SHARES / objects;
        let sparse = share(self.slabs[than].free, objects);
        let head = (0..EMPTY).find_map(|level| self.first(number, level))?;
        let index = if head != than { head } else { self.levels.behind(&self.slabs, head)? };
        let slab = &mut self.slabs[index];
        if sparse < SHARES / 4 || (share(slab.free, class.objects), index) >= (sparse, than) {
            return None;
        }
        let mut found = Vec::with_capacity(1);
        take(slab, class, 1, |_| 1, &mut found);
        slab.free -= found.len() as u32;
        slab.least_free = slab.least_free.min(slab.free);
        self.relist(index, class.objects);
        found.pop()
    }

    /// Makes objects of a slab, by mid, free.
    pub fn release(&mut self, index: usize, class: &Class, mids: impl Iterator<Item = u32> + Clone) {
        let slab = &mut self.slabs[index];
        for mid in mids.clone() {
            let (word, bit) = ((mid / 64) as usize, 1 << (mid % 64));
            debug_assert!(slab.taken[word] & bit != 0, "released twice");
            slab.taken[word] &= !bit;
            slab.free += 1;
        }
        self.relist(index, class.objects);
        self.widen(index, class, mids.map(|mid| class.index_of(mid)));
    }

    /// The slab's class has too many empty ones.
    pub fn is_crowded(&self, index: usize) -> bool {
        let number = self.slabs[index].class;
        self.empty[number] > KEPT + self.count[number] / 8
    }

    pub fn spare(&self, number: usize) -> Option<usize> {
        self.first(number, EMPTY)
    }

    pub fn empty_of_another(&self, number: usize) -> Option<usize> {
        (0..CLASSES).filter(|other| *other != number).find_map(|other| self.first(other, EMPTY))
    }

    /// At most a quarter taken, the sparsest first.
    pub fn sparse(&self, number: usize, most: usize) -> impl Iterator<Item = usize> {
        let next = |index: &usize| self.levels.behind(&self.slabs, *index);
        SPARSE.into_iter().flat_map(move |level| std::iter::successors(self.first(number, level), next).take(most))
    }

    /// A2.
    pub fn is_listed_right(&self, index: usize, objects: u32) -> bool {
        self.slabs[index].level() == self.slabs[index].level_for(objects)
    }

    /// The slab is unlinked.
    pub fn change_class(&mut self, index: usize, number: usize) {
        self.gaps.relist(&mut self.slabs, index, UNLISTED);
        let slab = &mut self.slabs[index];
        slab.gap = GRANULES;
        self.count[slab.class] -= 1;
        self.count[number] += 1;
        slab.class = number;
    }
}

/// As evenly from the stripes as possible.
fn take(slab: &mut Slab, class: &Class, most: u32, room: impl Fn(u32) -> u32, into: &mut Vec<Cached>) {
    let each = most.div_ceil(class.stripes);
    for stripe in 0..class.stripes {
        let mut left = each.min(most - into.len() as u32).min(room(stripe));
        for word in stripe * 8..stripe * 8 + 8 {
            let taken = &mut slab.taken[word as usize];
            while left > 0 && *taken != u64::MAX {
                let bit = taken.trailing_ones();
                *taken |= 1 << bit;
                let mid = word * 64 + bit;
                into.push(Cached::new(slab.at + class.offset_of(class.index_of(mid)), mid));
                left -= 1;
            }
        }
    }
}

pub fn all_free(class: &Class) -> Box<[u64]> {
    unused_bits(class)
}
