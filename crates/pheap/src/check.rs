//! Checks every invariant of a heap at rest: no other thread may be in an operation.

use crate::arena::Slab;
use crate::class::Class;
use crate::config::Model;
use crate::error::Error;
use crate::extents::ExtentKind;
use crate::guests::{self, Guests};
use crate::heap::{Heap, Offset};
use crate::layout::{PAGE, UNIT};
use crate::slab::{Header, read_bits, unused_bits};
use craton_base::{Medium, Space};

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Of the medium.
    pub bytes: u64,
    pub slabs: u64,
    /// Objects.
    pub small: u64,
    pub small_bytes: u64,
    pub large: u64,
    pub large_bytes: u64,
    /// Small objects in caches.
    pub cached: u64,
    /// Slabs with objects of a former class.
    pub mixed: u64,
}

impl<M: Medium + Space> Heap<M> {
    /// Calls `f` with each allocated object and its bytes, by address, except reserved ones and
    /// buffers of transactions.
    pub fn objects(&self, mut f: impl FnMut(Offset, u64)) {
        let cached = self.cached_objects();
        let undo = self.undo_buffers();
        let mut f = |at: u64, bytes| {
            if !undo.contains(&at) {
                f(Offset(at), bytes)
            }
        };
        for extent in self.extents.list(&self.medium) {
            let at = extent.page * PAGE;
            if extent.kind == ExtentKind::Object {
                f(at, u64::from(extent.pages) * PAGE);
                continue;
            }
            let Some(tag) = self.units.get(at) else { continue };
            let class = &self.classes[tag.class];
            let mut found = Vec::new();
            let arena = self.lock_arena(tag.arena);
            let slab = &arena.slabs[tag.slab];
            for index in 0..class.objects {
                let (word, bit) = self.bit(at, class, index);
                let (mid, object) = (class.mid_of(index), at + class.offset_of(index));
                let allocated = match self.sup.model {
                    Model::Log | Model::Frames => self.load(word) & bit != 0,
                    Model::Gc => {
                        slab.is_taken(mid) && !slab.is_covered(class, index) && cached.binary_search(&object).is_err()
                    }
                };
                if allocated {
                    found.push((object, u64::from(class.size)));
                }
            }
            if let Some(old) = &slab.old {
                found.extend(old.objects(at, &self.classes[old.class]));
            }
            if let Some(guests) = &slab.guests {
                let allocated = guests.iter().filter(|guest| guest.is_allocated(&self.medium, at));
                found.extend(allocated.map(|guest| (at + guest.offset(), guest.bytes())));
            }
            drop(arena);
            found.sort_unstable();
            found.into_iter().for_each(|(object, size)| f(object, size));
        }
    }

    /// Sorted.
    pub(crate) fn cached_objects(&self) -> Vec<u64> {
        let mut cached = Vec::new();
        for lane in &self.lanes {
            for (number, class) in self.classes.iter().enumerate() {
                cached.extend(lane.tcache.list(number, class).iter().map(|object| object.at()));
            }
        }
        cached.sort_unstable();
        cached
    }

    pub fn stats(&self) -> Stats {
        let mut stats = Stats { bytes: self.medium.len(), ..Stats::default() };
        for extent in self.extents.list(&self.medium) {
            match extent.kind {
                ExtentKind::Slab => stats.slabs += 1,
                ExtentKind::Object => {
                    stats.large += 1;
                    stats.large_bytes += u64::from(extent.pages) * PAGE;
                }
            }
            stats.mixed += u64::from(self.units.get(extent.page * PAGE).is_some_and(|tag| tag.mixed));
        }
        self.objects(|_, bytes| (stats.small, stats.small_bytes) = (stats.small + 1, stats.small_bytes + bytes));
        // Undo buffers must not count.
        let (mut large, mut large_bytes) = (0, 0);
        self.objects(|at, bytes| {
            if self.units.get(at.0).is_none() {
                (large, large_bytes) = (large + 1, large_bytes + bytes);
            }
        });
        (stats.large, stats.large_bytes) = (large, large_bytes);
        stats.small -= large;
        stats.small_bytes -= large_bytes;
        stats.cached = self.cached_objects().len() as u64;
        stats
    }

    /// Slabs, caches and extents. Reads each slab's header and bitmap.
    pub fn check(&self) -> Result<(), Error> {
        let damaged = |what, at| Err(Error::Damaged { what, at });
        let cached = self.cached_objects();
        if let Some(pair) = cached.windows(2).find(|pair| pair[0] == pair[1]) {
            return damaged("an object that two caches have", pair[0]);
        }
        let mut reserved = 0;
        let mut end = 0;
        for extent in self.extents.list(&self.medium) {
            let at = extent.page * PAGE;
            if at < end || at < self.places.data() {
                return damaged("an extent that overlaps another", at);
            }
            end = at + u64::from(extent.pages) * PAGE;
            if end > self.medium.len() {
                return damaged("an extent beyond the heap", at);
            }
            if extent.kind == ExtentKind::Object {
                if self.units.get(at).is_some() {
                    return damaged("a large object in a slab", at);
                }
                continue;
            }
            let Some(tag) = self.units.get(at).filter(|_| at.is_multiple_of(UNIT)) else {
                return damaged("a slab that DRAM does not know", at);
            };
            let Some(header) = Header::read(&self.medium, self.seed, at).filter(|h| h.class == tag.class) else {
                return damaged("header of a slab", at);
            };
            let class = &self.classes[header.class];
            let arena = self.lock_arena(tag.arena);
            let slab = &arena.slabs[tag.slab];
            if slab.at != at || slab.class != header.class {
                return damaged("a slab's place in its arena", at);
            }
            if slab.free != slab.taken.iter().map(|word| word.count_zeros()).sum::<u32>() {
                return damaged("A1: free objects of a slab", at);
            }
            if !arena.is_listed_right(tag.slab, class.objects) {
                return damaged("A2: list of a slab", at);
            }
            if !arena.gaps_are_right(tag.slab, class) {
                return damaged("A3: index of a slab's gaps", at);
            }
            let bits = read_bits(&self.medium, at, class);
            let unused = unused_bits(class);
            for index in 0..class.objects {
                let mid = class.mid_of(index);
                let is_set = |bits: &[u64]| bits[(mid / 64) as usize] & 1 << (mid % 64) != 0;
                let object = at + class.offset_of(index);
                let allocated = self.sup.model.is_logged() && is_set(&bits);
                let in_cache = cached.binary_search(&object).is_ok();
                let covered = slab.is_covered(class, index);
                match is_set(&slab.taken) {
                    true if allocated && (in_cache || covered) => {
                        return damaged("an allocated object that is cached or covered", object);
                    }
                    true => reserved += u64::from(!allocated && !in_cache && !covered),
                    false if allocated || in_cache || covered => {
                        return damaged("an object in use that its slab holds for free", object);
                    }
                    false => {}
                }
            }
            if unused.iter().zip(&*slab.taken).any(|(unused, taken)| unused & !taken != 0) {
                return damaged("a bit beyond a slab's objects", at);
            }
            reserved += self.check_guests(slab, class, &cached)?;
            if let Some(old) = &slab.old {
                old.check(&self.medium, at, class, &self.classes[old.class])?;
            }
        }
        if self.sup.model.is_logged() && reserved != self.reserved() {
            return damaged("objects that are taken and not published", reserved);
        }
        Ok(())
    }
    /// Counts reserved ones.
    fn check_guests(&self, slab: &Slab, class: &Class, cached: &[u64]) -> Result<u64, Error> {
        let at = slab.at;
        if !self.sup.model.is_logged() {
            return Ok(0);
        }
        let damaged = |what, at| Err(Error::Damaged { what, at });
        let guests = slab.guests.iter().flat_map(|guests| guests.iter());
        let (mut reserved, mut end, mut allocated) = (0, 0, Vec::new());
        let mut again = Guests::new(class);
        for guest in guests {
            let object = at + guest.offset();
            let in_cache = cached.binary_search(&object).is_ok();
            let is_allocated = guest.is_allocated(&self.medium, at);
            if guest.first < end || guest.first + guest.granules > guests::GRANULES {
                return damaged("NG1: guests that overlap", object);
            }
            if in_cache && is_allocated {
                return damaged("an allocated guest that is cached", object);
            }
            reserved += u64::from(!in_cache && !is_allocated);
            end = guest.first + guest.granules;
            allocated.extend(is_allocated.then_some(guest));
            again.add(class, guest, |_| {});
        }
        if guests::read_all(&self.medium, at)? != allocated {
            return damaged("guests of a slab that DRAM does not know", at);
        }
        match slab.guests.as_ref().is_none_or(|guests| **guests == again) {
            true => Ok(reserved),
            false => damaged("NG1: objects that guests cover", at),
        }
    }
}
