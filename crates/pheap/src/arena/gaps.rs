//! Lists of sparse slabs by their largest gap, for guests, in eighths of powers of two of granules.
//! The gap is an upper bound: frees raise it, and a failed search moves its slab to a lower list.

use super::list::{Kind, UNLISTED};
use super::{Arena, EMPTY, Slab};
use crate::class::Class;
use crate::guests::{GRANULE, Guest, Guests, LEAST, MOST, in_use, place};
use crate::tcache::{Cached, Tcache};

/// Up to [`GRANULES`](crate::guests::GRANULES).
pub(super) const GAPS: usize = 88;
/// By one search.
const LOOKED_AT: usize = 8;

fn list_of(granules: u32) -> usize {
    let log = granules.ilog2();
    (log * 8 + ((granules * 8) >> log) % 8) as usize
}

impl Slab {
    /// The slab was fuller once, or has guests.
    fn may_host(&self, objects: u32) -> bool {
        let live = objects - self.free;
        let was_live = objects - self.least_free;
        let is_sparse = live * 4 <= was_live * 3;
        self.old.is_none() && self.level() != EMPTY && (self.guests.is_some() || is_sparse)
    }

    /// Granules around the free object, up to [`MOST`].
    fn run_around(&self, class: &Class, index: u32) -> u32 {
        let is_free = |index: u32| !self.is_taken(class.mid_of(index));
        let most = (u64::from(MOST) * GRANULE / u64::from(class.size)) as u32 + 1;
        let before = (1..=index.min(most)).take_while(|steps| is_free(index - steps)).count() as u32;
        let behind =
            (1..=(class.objects - 1 - index).min(most)).take_while(|steps| is_free(index + steps)).count() as u32;
        let begin = (index - before) * class.size;
        let end = (index + behind + 1) * class.size;
        (end / GRANULE as u32).saturating_sub(begin.div_ceil(GRANULE as u32))
    }
}

impl Arena {
    /// Objects have become free: the gap around one may be the largest.
    pub(super) fn widen(&mut self, index: usize, class: &Class, mut objects: impl Iterator<Item = u32>) {
        let slab = &mut self.slabs[index];
        while slab.gap < MOST
            && let Some(object) = objects.next()
        {
            slab.gap = slab.gap.max(slab.run_around(class, object));
        }
        self.relist_gap(index, class.objects);
    }

    pub fn relist_found(&mut self, index: usize, class: &Class) {
        self.relist(index, class.objects);
        self.relist_gap(index, class.objects);
    }

    fn relist_gap(&mut self, index: usize, objects: u32) {
        let slab = &self.slabs[index];
        let granules = slab.gap;
        let list = if granules >= LEAST && slab.may_host(objects) { list_of(granules) } else { UNLISTED };
        if list != slab.links[Kind::Gap as usize].list {
            self.gaps.relist(&mut self.slabs, index, list);
        }
    }

    /// Caches guests from the smallest gaps that serve in a lane; returns their number. `classes`
    /// are the slabs'.
    pub fn host(&mut self, number: usize, classes: &[Class], tcache: &Tcache, granules: u32, most: u32) -> u32 {
        for list in list_of(granules)..GAPS {
            let mut next = self.gaps.first(list);
            for _ in 0..LOOKED_AT {
                let Some(index) = next else { break };
                next = self.gaps.behind(&self.slabs, index);
                if self.slabs[index].gap < granules {
                    continue;
                }
                let hosted = self.host_in(index, &classes[self.slabs[index].class], granules, most, |object| {
                    tcache.push(number, &classes[number], object)
                });
                if hosted > 0 {
                    return hosted;
                }
            }
        }
        0
    }

    fn host_in(
        &mut self,
        index: usize,
        class: &Class,
        granules: u32,
        most: u32,
        mut push: impl FnMut(Cached) -> bool,
    ) -> u32 {
        let slab = &mut self.slabs[index];
        let mut placed: Vec<Guest> = Vec::new();
        if slab.may_host(class.objects) {
            let bits = in_use(class, &slab.taken, slab.guests.as_deref());
            slab.gap = place(&bits, granules, |guest| {
                let fits = (placed.len() as u32) < most && push(Cached::guest(slab.at, guest));
                if fits {
                    placed.push(guest);
                }
                fits
            });
            for guest in &placed {
                slab.add_guest(class, *guest);
            }
        }
        self.relist(index, class.objects);
        self.relist_gap(index, class.objects);
        placed.len() as u32
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
        if guests.list().is_empty() {
            slab.guests = None;
        }
        slab.gap = slab.gap.max(guest.granules);
        self.relist(index, class.objects);
        let within = class.index_within(guest.offset() + guest.bytes() / 2);
        match within.filter(|object| !self.slabs[index].is_taken(class.mid_of(*object))) {
            Some(object) => self.widen(index, class, std::iter::once(object)),
            None => self.relist_gap(index, class.objects),
        }
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
