//! Gaps between objects of sparse slabs, where guests find their places: an index in DRAM by
//! length, in eighths of powers of two of granules.
//!
//! **From.** NVAlloc §5.2 walks a list for a slab to change. Here one search costs a few steps:
//! a slab is read as a whole once, and each later free adds the gap around its object.
//!
//! **Invariants.** *A3* Each gap of a slab that may host guests overlaps an entry of its length,
//! give or take a granule, or is at most as long as the slab's `gap`.

use super::list::{Kind, UNLISTED};
use super::{Arena, EMPTY, Slab};
use crate::class::Class;
use crate::guests::{ALIGNED_FROM, GRANULE, GRANULES, Guest, Guests, LEAST, gaps, in_use};
use crate::tcache::{Cached, Tcache};

/// Up to [`GRANULES`].
pub(super) const GAPS: usize = 88;
/// Guests that one search caches.
const AT_ONCE: u32 = 16;
/// Slabs that one search reads, and entries of a list whose length may suffice.
const LOOKED_AT: usize = 8;
/// Free objects on each side that a gap's search passes.
const WALK: u32 = 32;
/// Entries of a list.
const ENTRIES_MOST: usize = 1024;

fn list_of(granules: u32) -> usize {
    let log = granules.ilog2();
    (log * 8 + ((granules * 8) >> log) % 8) as usize
}

/// Was free when it was entered. Its slab's index may name another slab since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gap {
    slab: u32,
    first: u16,
    granules: u16,
}

/// The newest entry last.
pub(super) struct Index {
    lists: Box<[Vec<Gap>]>,
    /// A bit for each list with entries.
    filled: u128,
}

impl Index {
    pub fn new() -> Self {
        Self { lists: (0..GAPS).map(|_| Vec::new()).collect(), filled: 0 }
    }

    /// Long ones begin where aligned guests do. Returns the length if it has no room.
    fn push(&mut self, slab: usize, mut first: u32, end: u32) -> u32 {
        if end - first >= ALIGNED_FROM {
            first = first.next_multiple_of(2);
        }
        let granules = end - first;
        if granules < LEAST {
            return 0;
        }
        let number = list_of(granules);
        let list = &mut self.lists[number];
        if list.len() == ENTRIES_MOST {
            return granules;
        }
        list.push(Gap { slab: slab as u32, first: first as u16, granules: granules as u16 });
        self.filled |= 1 << number;
        0
    }

    /// One of the shortest that suffice.
    fn pop(&mut self, granules: u32) -> Option<Gap> {
        let number = list_of(granules);
        let list = &self.lists[number];
        let newest = list.iter().enumerate().rev().take(LOOKED_AT);
        let place = newest.into_iter().find(|(_, gap)| u32::from(gap.granules) >= granules).map(|(place, _)| place);
        if let Some(place) = place {
            return Some(self.take(number, place));
        }
        let longer = self.filled >> (number + 1);
        if longer == 0 {
            return None;
        }
        let number = number + 1 + longer.trailing_zeros() as usize;
        Some(self.take(number, self.lists[number].len() - 1))
    }

    fn take(&mut self, number: usize, place: usize) -> Gap {
        let gap = self.lists[number].swap_remove(place);
        if self.lists[number].is_empty() {
            self.filled &= !(1 << number);
        }
        gap
    }

    fn overlaps(&self, slab: usize, (first, end): (u32, u32)) -> bool {
        let has = |gap: &Gap| {
            let (from, to) = (u32::from(gap.first), u32::from(gap.first + gap.granules));
            gap.slab == slab as u32 && to.min(end).saturating_sub(from.max(first)) + 1 >= end - first
        };
        self.lists[..].iter().flatten().any(has)
    }
}

impl Slab {
    /// The slab was fuller once, or has guests.
    fn may_host(&self, objects: u32) -> bool {
        let live = objects - self.free;
        let was_live = objects - self.least_free;
        let is_sparse = live * 4 <= was_live * 3;
        self.old.is_none() && self.level() != EMPTY && (self.guests.is_some() || is_sparse)
    }

    fn is_object(&self, class: &Class, index: u32) -> bool {
        let mid = class.mid_of(index);
        self.is_taken(mid) && !self.guests.as_ref().is_some_and(|guests| guests.covers(mid))
    }

    /// Granules around the free bytes from `from` to `to`, which count from the first object.
    /// `None`: too many to pass.
    fn gap_around(&self, class: &Class, from: u32, to: u32) -> Option<(u32, u32)> {
        const BYTES: u32 = GRANULE as u32;
        let guests = self.guests.as_ref();
        let next = guests.and_then(|guests| guests.next_from(to.div_ceil(BYTES))).map_or(GRANULES, |guest| guest.first);
        let last = guests.and_then(|guests| guests.last_before(to.div_ceil(BYTES))).map_or(0, Guest::end);
        let (mut begin, mut end) = (from / class.size, (to - 1) / class.size + 1);
        let (least, most) = (begin.saturating_sub(WALK), end + WALK);
        while begin > 0 && begin * class.size > last * BYTES && !self.is_object(class, begin - 1) {
            if begin == least {
                return None;
            }
            begin -= 1;
        }
        while end < class.objects && end * class.size < next * BYTES && !self.is_object(class, end) {
            if end == most {
                return None;
            }
            end += 1;
        }
        let begin = (begin * class.size).div_ceil(BYTES).max(last);
        let end = if end >= class.objects { next } else { (end * class.size / BYTES).min(next) };
        Some((begin, end.max(begin)))
    }

    /// The first granules from `first` to `end` that are in use.
    fn first_in_use(&self, class: &Class, first: u32, end: u32) -> Option<(u32, u32)> {
        const BYTES: u32 = GRANULE as u32;
        let guest = self.guests.as_ref().and_then(|guests| {
            let before = guests.last_before(first).filter(|guest| guest.end() > first);
            before.or_else(|| guests.next_from(first))
        });
        let guest = guest.filter(|guest| guest.first < end).map(|guest| (guest.first, guest.end()));
        let end = guest.map_or(end, |(first, _)| first);
        let object = Guest { first, granules: end.saturating_sub(first) };
        let objects = if object.granules == 0 { 0..0 } else { object.covers(class) };
        let mut objects = objects.filter(|index| self.is_object(class, *index));
        let object =
            objects.next().map(|index| (index * class.size / BYTES, ((index + 1) * class.size).div_ceil(BYTES)));
        object.or(guest)
    }
}

impl Arena {
    /// Objects have become free.
    pub(super) fn widen(&mut self, index: usize, class: &Class, objects: impl Iterator<Item = u32>) {
        let size = class.size;
        self.widen_around(index, class, objects.map(|object| (object * size, (object + 1) * size)));
    }

    fn widen_around(&mut self, index: usize, class: &Class, freed: impl Iterator<Item = (u32, u32)>) {
        let slab = &mut self.slabs[index];
        // Else the slab is read as a whole before it hosts.
        if slab.gap < GRANULES {
            if slab.may_host(class.objects) {
                for (from, to) in freed {
                    let around = slab.gap_around(class, from, to);
                    let left_out = around.map_or(GRANULES, |(first, end)| self.index.push(index, first, end));
                    slab.gap = slab.gap.max(left_out);
                }
            } else {
                slab.gap = GRANULES;
            }
        }
        self.relist_gap(index, class.objects);
    }

    pub fn relist_found(&mut self, index: usize, class: &Class) {
        self.relist(index, class.objects);
        self.relist_gap(index, class.objects);
    }

    fn relist_gap(&mut self, index: usize, objects: u32) {
        if !self.hosts {
            return;
        }
        let slab = &self.slabs[index];
        let granules = slab.gap;
        let list = if granules >= LEAST && slab.may_host(objects) { list_of(granules) } else { UNLISTED };
        if list != slab.links[Kind::Gap as usize].list {
            self.gaps.relist(&mut self.slabs, index, list);
        }
    }

    /// Caches guests in a lane, from the shortest gaps that serve; returns their number. `classes`
    /// are the slabs'.
    pub fn host(&mut self, number: usize, classes: &[Class], tcache: &Tcache, granules: u32, most: u32) -> u32 {
        let most = most.min(AT_ONCE);
        let (mut hosted, mut reads, mut has_room) = (0, 0, true);
        while hosted < most && has_room {
            match self.index.pop(granules) {
                Some(gap) => {
                    let push = |object| {
                        has_room = hosted < most && tcache.push(number, &classes[number], object);
                        hosted += u32::from(has_room);
                        has_room
                    };
                    self.fill(gap, classes, granules, push);
                }
                None if hosted == 0 && reads < LOOKED_AT && self.read_gaps(classes, granules) => reads += 1,
                None => break,
            }
        }
        hosted
    }

    /// Enters the gaps of a slab with one that is long enough and not in the index, if there is
    /// one.
    fn read_gaps(&mut self, classes: &[Class], granules: u32) -> bool {
        let Some(index) = (list_of(granules)..GAPS).find_map(|list| self.gaps.first(list)) else { return false };
        let slab = &mut self.slabs[index];
        let class = &classes[slab.class];
        slab.gap = 0;
        if slab.may_host(class.objects) {
            let bits = in_use(class, &slab.taken, slab.guests.as_deref());
            gaps(&bits, |first, end| slab.gap = slab.gap.max(self.index.push(index, first, end)));
        } else {
            slab.gap = GRANULES;
        }
        self.relist_gap(index, class.objects);
        true
    }

    /// Places guests in what is still free of a gap, while `push` takes them.
    fn fill(&mut self, gap: Gap, classes: &[Class], granules: u32, mut push: impl FnMut(Cached) -> bool) {
        let index = gap.slab as usize;
        let slab = &mut self.slabs[index];
        if slab.at == 0 {
            return;
        }
        let class = &classes[slab.class];
        if !slab.may_host(class.objects) {
            slab.gap = GRANULES;
            return;
        }
        let (mut first, end) = (u32::from(gap.first), u32::from(gap.first + gap.granules));
        let align = if granules >= ALIGNED_FROM { 2 } else { 1 };
        let mut has_room = true;
        while first < end {
            let (until, next) = slab.first_in_use(class, first, end).unwrap_or((end, end));
            while has_room && first.next_multiple_of(align) + granules <= until {
                let guest = Guest { first: first.next_multiple_of(align), granules };
                has_room = push(Cached::guest(slab.at, guest));
                if has_room {
                    slab.add_guest(class, guest);
                    first = guest.end();
                }
            }
            if first < until {
                slab.gap = slab.gap.max(self.index.push(index, first, until));
            }
            first = next.max(first);
        }
        self.relist(index, class.objects);
        self.relist_gap(index, class.objects);
    }

    pub fn release_guest(&mut self, index: usize, class: &Class, guest: Guest) {
        let slab = &mut self.slabs[index];
        let Some(guests) = &mut slab.guests else {
            debug_assert!(false, "a guest without a host");
            return;
        };
        let (taken, mut freed) = (&mut slab.taken, 0);
        guests.remove(class, guest, |mid| {
            taken[(mid / 64) as usize] &= !(1 << (mid % 64));
            freed += 1;
        });
        slab.free += freed;
        if guests.is_empty() {
            slab.guests = None;
        }
        self.relist(index, class.objects);
        let begin = guest.first * GRANULE as u32;
        self.widen_around(index, class, std::iter::once((begin, begin + guest.bytes() as u32)));
    }

    /// A3.
    pub fn gaps_are_right(&self, index: usize, class: &Class) -> bool {
        let slab = &self.slabs[index];
        let mut is_right = true;
        if slab.may_host(class.objects) && slab.gap < GRANULES {
            let bits = in_use(class, &slab.taken, slab.guests.as_deref());
            gaps(&bits, |first, end| {
                let is_short = end - first < LEAST || end - first <= slab.gap;
                is_right = is_right && (is_short || self.index.overlaps(index, (first, end)));
            });
        }
        is_right
    }
}

impl Slab {
    /// `false`: a guest of the header overlaps an object.
    pub fn adopt_guests(&mut self, class: &Class, guests: Vec<Guest>) -> bool {
        guests.into_iter().all(|guest| {
            let overlaps = guest.covers(class).any(|index| {
                let mid = class.mid_of(index);
                let by_guest = self.guests.as_ref().is_some_and(|guests| guests.covers(mid));
                self.is_taken(mid) && !by_guest
            });
            if !overlaps {
                self.add_guest(class, guest);
            }
            !overlaps
        })
    }

    /// Objects that the guest covers become taken.
    pub fn add_guest(&mut self, class: &Class, guest: Guest) {
        let guests = self.guests.get_or_insert_with(|| Box::new(Guests::new(class)));
        let (taken, free) = (&mut self.taken, &mut self.free);
        guests.add(class, guest, |mid| {
            let (word, bit) = ((mid / 64) as usize, 1 << (mid % 64));
            debug_assert!(taken[word] & bit == 0, "a guest over an object");
            taken[word] |= bit;
            *free -= 1;
        });
    }
}

#[cfg(test)]
mod tests;
