//! Slab morphing: a sparse slab of one class serves another (NVAlloc §5.2, figure 5). Live objects
//! stay; an index table in the header lists them. Free space becomes objects of the new class.
//!
//! **From.** Where we differ: the table is durable before one redo line changes class and bitmap,
//! so no step is undone; empty slabs change without a table.
//!
//! **Invariants.** *NM1* A slab changes only when every taken object is allocated: none is cached
//! or reserved. *NM2* A new object is taken while an old one covers it. *NM3* The table is written
//! only when no line of an unsettled epoch names it, and the header names no old class.
//!
//! **Threads.** A slab is frozen first: frees that meet it wait. Then each lane is locked once:
//! earlier frees have ended.

use crate::arena::{Arena, Slab};
use crate::class::{CLASSES, Class};
use crate::config::Model;
use crate::error::Error;
use crate::heap::{Guard, Heap};
use crate::layout::{SLAB_TABLE, SLAB_TABLE_ENTRIES, UNIT};
use crate::line::{Kind, Redo};
use crate::slab::{Header, read_bits, unused_bits};
use crate::units::Tag;
use craton_base::atomic::{Ordering, spin};
use craton_base::{Medium, Space};

/// Set in a table's entry if the object is allocated.
const ALLOCATED: u64 = 1 << 14;
const ENTRY_BITS: u32 = 16;
/// In one list.
const LOOKED_AT: usize = 8;
/// Tries to lock a lane.
const PATIENCE: usize = if cfg!(loom) { 2 } else { 1000 };

pub struct Old {
    pub class: usize,
    pub live: u32,
    /// Indices of the old class, ascending; `None` when free.
    entries: Vec<Option<u16>>,
    /// Of each new object, how many old ones cover it.
    covered: Vec<u16>,
}

impl Old {
    fn new(number: usize, class: &Class, entries: Vec<Option<u16>>, new: &Class) -> Self {
        let mut old = Self { class: number, live: 0, entries, covered: vec![0; new.objects as usize] };
        for index in old.entries.clone().into_iter().flatten() {
            old.live += 1;
            for covered in new_under(class, u32::from(index), new) {
                old.covered[covered as usize] += 1;
            }
        }
        old
    }

    pub fn covers(&self, index: u32) -> bool {
        self.covered[index as usize] > 0
    }

    /// Live ones in the slab at `at`: offset and size.
    pub fn objects(&self, at: u64, class: &Class) -> Vec<(u64, u64)> {
        let object = |index: &u16| (at + class.offset_of(u32::from(*index)), u64::from(class.size));
        self.entries.iter().flatten().map(object).collect()
    }

    fn entry(&self, index: u32) -> Option<u32> {
        let found = self.entries.iter().position(|entry| entry.is_some_and(|there| u32::from(there) == index));
        found.map(|entry| entry as u32)
    }

    pub fn check<M: Medium>(&self, medium: &M, at: u64, new: &Class, class: &Class) -> Result<(), Error> {
        let damaged = |what| Err(Error::Damaged { what, at });
        if read_table(medium, at, self.entries.len() as u32, class)? != self.entries {
            return damaged("NM1: index table of a slab");
        }
        let again = Self::new(self.class, class, self.entries.clone(), new);
        match again.live == self.live && again.covered == self.covered && self.live > 0 {
            true => Ok(()),
            false => damaged("NM2: objects that old ones cover"),
        }
    }
}

/// The new objects that share bytes with an old one.
fn new_under(class: &Class, index: u32, new: &Class) -> std::ops::Range<u32> {
    let begin = class.offset_of(index);
    let end = begin + u64::from(class.size);
    let first = new.index_within(begin).unwrap_or(new.objects);
    first..new.index_within(end - 1).map_or(new.objects, |last| last + 1)
}

fn table_bit(slab: u64, entry: u32) -> (u64, u64) {
    (slab + SLAB_TABLE + u64::from(entry / 4) * 8, ALLOCATED << (entry % 4 * ENTRY_BITS))
}

fn read_table<M: Medium>(medium: &M, at: u64, entries: u32, class: &Class) -> Result<Vec<Option<u16>>, Error> {
    let read = |entry: u32| {
        let (word, _) = table_bit(at, entry);
        let value = medium.word(word).load(Ordering::Relaxed) >> (entry % 4 * ENTRY_BITS) & 0xffff;
        let index = value & (ALLOCATED - 1);
        match value & ALLOCATED {
            0 => Ok(None),
            _ if index < u64::from(class.objects) => Ok(Some(index as u16)),
            _ => Err(Error::Damaged { what: "index table of a slab", at: word }),
        }
    };
    (0..entries).map(read).collect()
}

/// Reads the index table; returns the number of old objects.
pub fn adopt<M: Medium>(
    medium: &M,
    classes: &[Class; CLASSES],
    slab: &mut Slab,
    header: &Header,
) -> Result<u64, Error> {
    let Some((number, entries)) = header.old else { return Ok(0) };
    let class = &classes[header.class];
    let entries = read_table(medium, slab.at, entries, &classes[number])?;
    let old = Old::new(number, &classes[number], entries, class);
    if old.live == 0 {
        // NM3: the header still names the old class.
        slab.table_epoch = u64::MAX;
        return Ok(0);
    }
    let live = u64::from(old.live);
    cover(slab, old, class);
    Ok(live)
}

fn cover(slab: &mut Slab, old: Old, class: &Class) {
    for index in (0..class.objects).filter(|index| old.covers(*index)) {
        let mid = class.mid_of(index);
        slab.taken[(mid / 64) as usize] |= 1 << (mid % 64);
    }
    slab.free = slab.taken.iter().map(|word| word.count_zeros()).sum();
    slab.old = Some(Box::new(old));
}

impl<M: Medium + Space> Heap<M> {
    pub(crate) fn morph(&self, guard: &Guard<'_>, number_of_arena: usize, number: usize) -> bool {
        let Ok(mut fruitless) = self.morphing.try_lock() else { return false };
        let mut arena = self.lock_arena(number_of_arena);
        if let Some(index) = arena.empty_of_another(number) {
            let header = Header { class: number, stripes: self.classes[number].stripes, old: None };
            self.change(guard, &mut arena, number_of_arena, index, header, None);
            return true;
        }
        if self.options.morph == 0 || self.sup.model == Model::Gc {
            return false;
        }
        let state = |arena: &Arena| (arena.sparser, self.settled.load(Ordering::Relaxed));
        if fruitless[number_of_arena] == state(&arena) {
            return false;
        }
        let mut found = self.candidate(&arena, number);
        if let Err(Some(other)) = found {
            // Only cached objects are in the way.
            drop(arena);
            self.empty_cache(guard, other);
            arena = self.lock_arena(number_of_arena);
            found = self.candidate(&arena, number);
        }
        let Ok(index) = found else {
            fruitless[number_of_arena] = state(&arena);
            return false;
        };
        arena.unlink(index);
        let (at, class) = (arena.slabs[index].at, arena.slabs[index].class);
        let fine = self.units.get(at).is_some_and(|tag| tag.fine);
        let tag = Tag { class, arena: number_of_arena, slab: index, mixed: true, frozen: true, fine };
        self.units.set(at, Some(tag));
        drop(arena);
        let quiet = self.wait_for_lanes(guard);
        let mut arena = self.lock_arena(number_of_arena);
        let changed = quiet
            && self.is_settled(&arena.slabs[index])
            && self.mix(guard, &mut arena, number_of_arena, index, number);
        if !changed {
            self.units.set(at, Some(Tag { mixed: false, frozen: false, ..tag }));
            arena.relist(index, self.classes[class].objects);
        }
        changed
    }

    /// A sparse slab, or a class with cached objects in one.
    fn candidate(&self, arena: &Arena, number: usize) -> Result<usize, Option<usize>> {
        let mut cached = None;
        let is_sparse = |index: &usize| {
            let slab = &arena.slabs[*index];
            let class = &self.classes[slab.class];
            let live = class.objects - slab.free;
            // A slab that has just begun to fill is sparse too.
            let was_fuller = 2 * live <= class.objects - slab.least_free;
            live * 100 <= class.objects * self.options.morph
                && was_fuller
                && live as usize <= SLAB_TABLE_ENTRIES
                && slab.old.is_none()
                && slab.guests.is_none()
                && self.is_free_of_lines(slab)
        };
        for other in (0..CLASSES).filter(|other| *other != number) {
            for index in arena.sparse(other, LOOKED_AT).filter(is_sparse) {
                if self.is_settled(&arena.slabs[index]) {
                    return Ok(index);
                }
                cached = Some(other);
            }
        }
        Err(cached)
    }

    /// NM3.
    fn is_free_of_lines(&self, slab: &Slab) -> bool {
        let is_settled = !M::FLUSHES || self.settled.load(Ordering::Relaxed) >= slab.table_epoch;
        is_settled && slab.table_epoch != u64::MAX
    }

    /// NM1, NM3 and NG2.
    fn is_settled(&self, slab: &Slab) -> bool {
        let class = &self.classes[slab.class];
        self.is_free_of_lines(slab) && slab.guests.is_none() && read_bits(&self.medium, slab.at, class) == slab.taken
    }

    /// NM1: frees that met the slab before it was frozen end.
    fn wait_for_lanes(&self, guard: &Guard<'_>) -> bool {
        self.lanes.iter().enumerate().all(|(index, lane)| {
            let mine = index as u32 == guard.index;
            let locked = mine
                || (0..PATIENCE).any(|_| {
                    lane.try_lock() || {
                        spin();
                        false
                    }
                });
            if locked && !mine {
                lane.unlock();
            }
            locked && (M::FLUSHES || mine || self.seats.locks(index as u32))
        })
    }

    fn mix(&self, guard: &Guard<'_>, arena: &mut Arena, place: usize, index: usize, number: usize) -> bool {
        let slab = &arena.slabs[index];
        let (at, class, new) = (slab.at, &self.classes[slab.class], &self.classes[number]);
        let live = (0..class.objects).filter(|index| slab.is_taken(class.mid_of(*index)));
        let entries: Vec<Option<u16>> = live.map(|index| Some(index as u16)).collect();
        let old = Old::new(slab.class, class, entries, new);
        let free = old.covered.iter().filter(|covered| **covered == 0).count();
        if 2 * free < new.objects as usize {
            return false;
        }
        for (word, entries) in old.entries.chunks(4).enumerate() {
            let value = |(i, entry): (usize, &Option<u16>)| {
                entry.map_or(0, |index| (u64::from(index) | ALLOCATED) << (i as u32 * ENTRY_BITS))
            };
            let value = entries.iter().enumerate().map(value).fold(0, |all, entry| all | entry);
            self.medium.store(at + SLAB_TABLE + 8 * word as u64, value);
        }
        self.flush_range(at + SLAB_TABLE, old.entries.len().div_ceil(4) as u64 * 8);
        self.medium.fence();
        let header = Header { class: number, stripes: new.stripes, old: Some((slab.class, old.entries.len() as u32)) };
        self.change(guard, arena, place, index, header, Some(old));
        true
    }

    fn change(
        &self,
        guard: &Guard<'_>,
        arena: &mut Arena,
        place: usize,
        index: usize,
        header: Header,
        old: Option<Old>,
    ) {
        arena.unlink(index);
        arena.change_class(index, header.class);
        let slab = &mut arena.slabs[index];
        let class = &self.classes[header.class];
        let (home, value) = (slab.at, header.word());
        self.commit_aside(guard, Redo { kind: Kind::Morph, slot: 0, old: 0, new: 0, home, value, len: 0 });
        slab.taken = unused_bits(class);
        (slab.free, slab.least_free) = (class.objects, class.objects);
        let mixed = old.is_some();
        let fine = Tag::is_fine(header.class) || header.old.is_some_and(|(old, _)| Tag::is_fine(old));
        if let Some(old) = old {
            cover(slab, old, class);
        }
        let tag = Tag { class: header.class, arena: place, slab: index, mixed, frozen: false, fine };
        self.units.set(home, Some(tag));
        arena.relist(index, class.objects);
    }

    /// Of a live old object.
    pub(crate) fn old_index(&self, tag: Tag, at: u64) -> Option<u32> {
        let arena = self.lock_arena(tag.arena);
        let old = arena.slabs[tag.slab].old.as_ref()?;
        old.entry(self.classes[old.class].index_at(at % UNIT)?)
    }

    /// Word, bits and object size.
    pub(crate) fn old_home(&self, tag: Tag, entry: u32, at: u64) -> Result<(u64, u64, u32), Error> {
        let arena = self.lock_arena(tag.arena);
        let slab = &arena.slabs[tag.slab];
        let old = slab.old.as_ref().filter(|old| old.entries[entry as usize].is_some());
        let old = old.ok_or(Error::AlreadyFree { at })?;
        let (word, bit) = table_bit(slab.at, entry);
        Ok((word, bit, self.classes[old.class].size))
    }

    /// The free is committed.
    pub(crate) fn finish_old(&self, guard: &Guard<'_>, tag: Tag, entry: u32) {
        let mut arena = self.lock_arena(tag.arena);
        let slab = &mut arena.slabs[tag.slab];
        let (at, number) = (slab.at, slab.class);
        let class = &self.classes[number];
        let Some(old) = &mut slab.old else { return };
        let Some(index) = old.entries[entry as usize].take() else { return };
        old.live -= 1;
        for covered in new_under(&self.classes[old.class], u32::from(index), class) {
            old.covered[covered as usize] -= 1;
            if old.covered[covered as usize] == 0 {
                let mid = class.mid_of(covered);
                slab.taken[(mid / 64) as usize] &= !(1 << (mid % 64));
                slab.free += 1;
            }
        }
        if old.live == 0 {
            // A normal slab again (the paper's slab_after).
            let header = Header { class: number, stripes: class.stripes, old: None };
            let redo = Redo { kind: Kind::Settle, slot: 0, old: 0, new: 0, home: at, value: header.word(), len: 0 };
            self.commit_aside(guard, redo);
            slab.old = None;
            slab.table_epoch = self.epoch_of(guard);
            self.units.set(at, Some(Tag { class: number, mixed: false, frozen: false, ..tag }));
        }
        arena.relist(tag.slab, class.objects);
    }
}
