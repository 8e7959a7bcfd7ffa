//! Allocation and free, each with its slot: whole or not at all, also in a crash.
//!
//! **From.** NVAlloc §4.1, nvalloc_malloc_to and nvalloc_free_from.
//!
//! **Cost.** A small object, with write-back: one line, one fence. Elsewhere the line's stores, and
//! one locked instruction. GC: no line and no bit.

use crate::class::{Class, SIZES, SMALL_MOST, class_of};
use crate::config::Model;
use crate::error::Error;
use crate::extents::{Extent, ExtentKind, Home, Plan};
use crate::guests::{self, Guest};
use crate::heap::{Guard, Heap, Offset, Slot};
use crate::layout::{LANES, OFFSET_BITS, PAGE, PAGES_PER_UNIT, ROOTS, ROOTS_END, UNIT};
use crate::line::{Kind, Redo};
use crate::slab::Header;
use crate::tcache::{Cached, bit_of};
use crate::units::Tag;
use craton_base::atomic::{Ordering, spin};
use craton_base::{LINE_BYTES, Medium, Space};

/// 26 bits in a log entry.
const PAGES_MOST: u64 = (1 << 26) - 1;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    Small {
        number: usize,
        object: Cached,
    },
    /// Of a slab's former class.
    Old {
        tag: Tag,
        index: u32,
    },
    Large {
        page: u64,
        pages: u32,
    },
}

impl<M: Medium + Space> Heap<M> {
    /// The contents are not initialised.
    #[inline]
    pub fn alloc_to(&self, slot: Slot, size: u64) -> Result<Offset, Error> {
        match self.try_alloc_to(slot, size) {
            Err(Error::NoMemory) if self.reclaim() => self.try_alloc_to(slot, size),
            result => result,
        }
    }

    #[inline(always)]
    fn try_alloc_to(&self, slot: Slot, size: u64) -> Result<Offset, Error> {
        self.check_slot(slot)?;
        if size.wrapping_sub(1) >= SMALL_MOST {
            return self.alloc_large(slot, size);
        }
        let number = class_of(size);
        if self.sup.model == Model::Gc {
            let guard = self.enter_cache();
            let object = self.cached(&guard, number)?;
            self.medium.store(slot.0, object.at());
            return Ok(Offset(object.at()));
        }
        let guard = self.enter(1);
        let object = self.cached(&guard, number)?;
        let redo = self.redo_alloc(slot.0, self.load(slot.0), number, object);
        guard.lane.commit_one(&self.medium, self.stamp(), &redo);
        Ok(Offset(object.at()))
    }

    /// Frees the slot's object and stores 0 in the slot.
    #[inline]
    pub fn free_from(&self, slot: Slot) -> Result<(), Error> {
        self.check_slot(slot)?;
        let at = self.load(slot.0);
        let is_logged = self.sup.model.is_logged();
        // Before the class is known: `morph` waits for the lane.
        let guard = if is_logged { self.enter(1) } else { self.enter_cache() };
        let Some(tag) = self.units.get(at).filter(|tag| !tag.frozen) else {
            // A frozen slab waits for this lane.
            drop(guard);
            return self.free_rare(None, slot, at);
        };
        let class = &self.classes[tag.class];
        let Some(index) = class.index_at(at % UNIT) else {
            return self.free_guest(guard, slot, at, tag);
        };
        let object = Cached::new(at, class.mid_of(index));
        if is_logged && self.load(object.bit().0) & object.bit().1 == 0 {
            return self.free_guest(guard, slot, at, tag);
        }
        let found = Found::Small { number: tag.class, object };
        let is_claimed = self.claims();
        if is_claimed {
            self.claim(slot, at, &found)?;
        }
        let mut is_mine = true;
        if is_logged {
            let (home, bit) = object.bit();
            let redo = Redo { kind: Kind::Free, slot: slot.0, old: at, new: 0, home, value: bit, len: class.size / 16 };
            is_mine = guard.lane.commit_one(&self.medium, self.stamp(), &redo);
        } else {
            self.medium.store(slot.0, 0);
        }
        if is_claimed {
            self.unclaim(at, &found);
        }
        if !is_mine {
            return Err(Error::AlreadyFree { at });
        }
        self.uncommit(&guard, tag.class, object);
        Ok(())
    }

    /// Bytes that the object can hold.
    pub fn size_of(&self, object: Offset) -> Result<u64, Error> {
        match self.find(object.0)? {
            Found::Small { number, .. } => Ok(u64::from(SIZES[number])),
            Found::Old { tag, .. } => {
                let arena = self.lock_arena(tag.arena);
                let old = arena.slabs[tag.slab].old.as_ref().map(|old| old.class);
                old.map(|class| u64::from(SIZES[class])).ok_or(Error::NotAnObject { at: object.0 })
            }
            Found::Large { pages, .. } => Ok(u64::from(pages) * PAGE),
        }
    }

    #[inline]
    pub(crate) fn load(&self, at: u64) -> u64 {
        // ORDERING: pairs with the release in `Medium::store`, behind the object's contents.
        self.medium.word(at).load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn check_slot(&self, slot: Slot) -> Result<(), Error> {
        let at = slot.0;
        let in_data = at >= self.data && at < self.medium.len();
        if at.is_multiple_of(8) && (in_data || (ROOTS..ROOTS_END).contains(&at) && at.is_multiple_of(LINE_BYTES)) {
            return Ok(());
        }
        Err(Error::NotASlot { at })
    }

    /// Also allows words of lanes' headers.
    pub(crate) fn check_any_slot(&self, slot: Slot) -> Result<(), Error> {
        let headers = LANES..self.places.ring(0);
        if headers.contains(&slot.0) { Ok(()) } else { self.check_slot(slot) }
    }

    pub(crate) fn redo_alloc(&self, slot: u64, old: u64, number: usize, object: Cached) -> Redo {
        if object.is_guest() {
            return redo_guest(Kind::AllocGuest, slot, old, object);
        }
        let (home, value) = object.bit();
        Redo { kind: Kind::Alloc, slot, old, new: object.at(), home, value, len: SIZES[number] / 16 }
    }

    /// Commit the line, or `cancel_free` it. A `slot` of 0 is not cleared.
    pub(crate) fn redo_free(&self, slot: u64, at: u64, found: &Found) -> Result<Redo, Error> {
        let redo = |kind, home, value, len| Redo { kind, slot, old: at, new: 0, home, value, len };
        match *found {
            Found::Small { object, .. } if object.is_guest() => Ok(redo_guest(Kind::FreeGuest, slot, 0, object)),
            Found::Small { number, object } => {
                let (home, bit) = object.bit();
                Ok(redo(Kind::Free, home, bit, SIZES[number] / 16))
            }
            Found::Old { tag, index } => {
                let (home, bits, size) = self.old_home(tag, index, at)?;
                Ok(redo(Kind::Free, home, bits, size / 16))
            }
            Found::Large { page, .. } => {
                let plan = self.extents.plan_free(&self.medium, page)?;
                Ok(redo(Kind::FreeExtent, plan.home.at, plan.home.value, plan.pages))
            }
        }
    }

    pub(crate) fn find(&self, at: u64) -> Result<Found, Error> {
        if let Some(tag) = self.tag_of(at) {
            let class = &self.classes[tag.class];
            let object = class.index_at(at % UNIT).map(|index| Cached::new(at, class.mid_of(index)));
            let is_allocated = |object: &Cached| {
                let (home, bit) = object.bit();
                !self.sup.model.is_logged() || self.load(home) & bit != 0
            };
            if let Some(object) = object.filter(is_allocated) {
                return Ok(Found::Small { number: tag.class, object });
            }
            // An old object covers what its place is in the new class, so that bit is clear.
            if tag.mixed
                && let Some(index) = self.old_index(tag, at)
            {
                return Ok(Found::Old { tag, index });
            }
            if let Some(guest) = self.guest_at(tag, at) {
                let object = Cached::guest(at & !(UNIT - 1), guest);
                return Ok(Found::Small { number: guests::class_for(guest.granules), object });
            }
            return Err(if object.is_some() { Error::AlreadyFree { at } } else { Error::NotAnObject { at } });
        }
        let page = at / PAGE;
        let extent = self.extents.extent_at(&self.medium, page).filter(|extent| extent.page * PAGE == at);
        match extent.filter(|extent| extent.kind == ExtentKind::Object) {
            Some(Extent { page, pages, .. }) => Ok(Found::Large { page, pages }),
            None => Err(Error::NotAnObject { at }),
        }
    }

    /// An allocated one. Not by the medium's bits alone: while another thread sets or clears a
    /// guest's two, they do not tell first granules from last ones.
    fn guest_at(&self, tag: Tag, at: u64) -> Option<Guest> {
        let arena = self.lock_arena(tag.arena);
        let slab = &arena.slabs[tag.slab];
        let guest = slab.guests.as_ref().filter(|_| slab.at == at & !(UNIT - 1))?.beginning_at(at % UNIT)?;
        guest.is_allocated(&self.medium, slab.at).then_some(guest)
    }

    /// Waits while the unit is frozen.
    fn tag_of(&self, at: u64) -> Option<Tag> {
        loop {
            match self.units.get(at) {
                Some(tag) if tag.frozen => {
                    spin();
                    std::thread::yield_now();
                }
                tag => return tag,
            }
        }
    }

    /// Call when the line is committed.
    pub(crate) fn finish_free(&self, guard: &Guard<'_>, found: Found, redo: &Redo) {
        match found {
            Found::Small { number, object } => self.uncommit(guard, number, object),
            Found::Old { tag, index } => self.finish_old(guard, tag, index),
            Found::Large { .. } => self.extents.finish_free(&self.medium, &plan_of(redo), self.epoch_of(guard)),
        }
    }

    /// Of what is no object of the slab's class.
    #[inline(never)]
    fn free_guest(&self, guard: Guard<'_>, slot: Slot, at: u64, tag: Tag) -> Result<(), Error> {
        let guest = if tag.mixed || !self.sup.model.is_logged() { None } else { self.guest_at(tag, at) };
        let Some(guest) = guest else { return self.free_rare(Some(guard), slot, at) };
        let object = Cached::guest(at & !(UNIT - 1), guest);
        let number = guests::class_for(guest.granules);
        let found = Found::Small { number, object };
        self.claim(slot, at, &found)?;
        guard.lane.commit_one(&self.medium, self.stamp(), &redo_guest(Kind::FreeGuest, slot.0, 0, object));
        self.unclaim(at, &found);
        self.uncommit(&guard, number, object);
        Ok(())
    }

    #[cold]
    fn free_rare(&self, guard: Option<Guard<'_>>, slot: Slot, at: u64) -> Result<(), Error> {
        let guard = guard.filter(|_| self.sup.model.is_logged());
        match self.try_free_rare(guard.unwrap_or_else(|| self.enter(1)), slot, at) {
            // The bookkeeping log is full until epochs are settled.
            Err(Error::NoMemory) => {
                self.reclaim();
                self.try_free_rare(self.enter(1), slot, at)
            }
            result => result,
        }
    }

    /// Returns empty slabs, and reuses the log's chunks. `false`: no slab was empty.
    #[cold]
    pub(crate) fn reclaim(&self) -> bool {
        let retired = self.retire_empty();
        self.settle();
        self.settle();
        self.tick();
        retired
    }

    fn try_free_rare(&self, guard: Guard<'_>, slot: Slot, at: u64) -> Result<(), Error> {
        if at == 0 {
            return Err(Error::Null { slot: slot.0 });
        }
        let found = self.find(at)?;
        let logged = if self.sup.model == Model::Gc { 0 } else { slot.0 };
        let redo = self.redo_free(logged, at, &found)?;
        if let Err(error) = self.claim(slot, at, &found) {
            self.cancel_free(&redo);
            return Err(error);
        }
        if self.sup.model == Model::Gc {
            // Unreachable before it is free: a crash in between loses nothing.
            self.medium.store(slot.0, 0);
            self.medium.flush(slot.0);
            self.medium.fence();
        }
        if self.sup.model.is_logged() || matches!(found, Found::Large { .. }) {
            guard.lane.commit(&self.medium, self.stamp(), &[redo]);
        }
        self.unclaim(at, &found);
        self.finish_free(&guard, found, &redo);
        Ok(())
    }

    #[cold]
    fn alloc_large(&self, slot: Slot, size: u64) -> Result<Offset, Error> {
        let guard = self.enter(1);
        let plan = self.plan_large(size)?;
        let at = plan.page * PAGE;
        if self.sup.model == Model::Gc {
            guard.lane.commit(&self.medium, self.stamp(), &[self.redo_large(0, 0, &plan)]);
            self.medium.store(slot.0, at);
        } else {
            let redo = self.redo_large(slot.0, self.load(slot.0), &plan);
            guard.lane.commit(&self.medium, self.stamp(), &[redo]);
        }
        Ok(Offset(at))
    }

    pub(crate) fn plan_large(&self, size: u64) -> Result<Plan, Error> {
        let limit = if self.sup.most == 0 { u64::MAX } else { self.sup.most };
        let most = (self.medium.limit().min(limit) - self.places.data()).min(PAGES_MOST * PAGE);
        match size {
            0 => Err(Error::NoSize),
            size if size > most => Err(Error::TooLarge { size, most }),
            size => Ok(self.extents.plan_alloc(&self.medium, size.div_ceil(PAGE) as u32, ExtentKind::Object)?),
        }
    }

    pub(crate) fn redo_large(&self, slot: u64, old: u64, plan: &Plan) -> Redo {
        let new = plan.page * PAGE;
        let (home, value) = (plan.home.at, plan.home.value);
        Redo { kind: Kind::AllocExtent, slot, old, new, home, value, len: plan.pages }
    }

    #[inline]
    pub(crate) fn cached(&self, guard: &Guard<'_>, number: usize) -> Result<Cached, Error> {
        match guard.lane.tcache.pop(number, &self.classes[number]) {
            Some(object) => Ok(object),
            None => self.refill(guard, number),
        }
    }

    #[cold]
    fn refill(&self, guard: &Guard<'_>, number: usize) -> Result<Cached, Error> {
        let class = &self.classes[number];
        let home = guard.index as usize % self.arenas.len();
        let most = (class.cached * class.stripes / 2).max(1);
        let from = |arena: usize| self.lock_arena(arena).refill(number, class, &guard.lane.tcache, most) > 0;
        let host = |arena: usize| self.host(guard, arena, number, most) > 0;
        let mut filled = from(home) || self.morph(guard, home, number) && from(home) || host(home);
        if !filled {
            match self.new_slab(guard, home, number, most) {
                Ok(()) => filled = true,
                // Other arenas may have some.
                Err(error) => {
                    filled = (0..self.arenas.len())
                        .any(|arena| from(arena) || self.morph(guard, arena, number) && from(arena) || host(arena));
                    if !filled {
                        return Err(error);
                    }
                }
            }
        }
        debug_assert!(filled, "no error and no object");
        self.join_epoch(guard);
        guard.lane.tcache.pop(number, class).ok_or(Error::NoMemory)
    }

    /// Caches guests; returns their number.
    fn host(&self, guard: &Guard<'_>, arena: usize, number: usize, most: u32) -> u32 {
        let granules = guests::granules_of(number).filter(|_| self.sup.model.is_logged() && self.options.morph != 0);
        let Some(granules) = granules else { return 0 };
        self.lock_arena(arena).host(number, &self.classes[..], &guard.lane.tcache, granules, most)
    }

    pub(crate) fn commit_aside(&self, guard: &Guard<'_>, redo: Redo) {
        if guard.roomy {
            guard.lane.commit(&self.medium, self.stamp(), &[redo]);
        } else {
            self.enter(1).lane.commit(&self.medium, self.stamp(), &[redo]);
        }
    }

    /// Caches up to `most` of its objects.
    fn new_slab(&self, guard: &Guard<'_>, arena: usize, number: usize, most: u32) -> Result<(), Error> {
        let class = &self.classes[number];
        let plan = self.extents.plan_alloc(&self.medium, PAGES_PER_UNIT, ExtentKind::Slab)?;
        let at = plan.page * PAGE;
        debug_assert!(at.is_multiple_of(UNIT) && at < 1 << OFFSET_BITS);
        let word = Header { class: number, stripes: class.stripes, old: None }.word();
        let (home, value) = (plan.home.at, plan.home.value);
        let redo = Redo { kind: Kind::NewSlab, slot: 0, old: word, new: at, home, value, len: plan.pages };
        self.commit_aside(guard, redo);
        let mut slabs = self.lock_arena(arena);
        let index = slabs.insert(at, number, crate::arena::all_free(class), class.objects);
        let fine = Tag::is_fine(number);
        self.units.set(at, Some(Tag { class: number, arena, slab: index, mixed: false, frozen: false, fine }));
        slabs.relist(index, class.objects);
        // Under the same lock, or another thread could take all of it.
        let moved = slabs.refill(number, class, &guard.lane.tcache, most);
        debug_assert!(moved > 0, "a new slab without objects");
        Ok(())
    }

    pub(crate) fn cancel_free(&self, redo: &Redo) {
        if redo.kind == Kind::FreeExtent {
            self.extents.cancel(&self.medium, &plan_of(redo));
        }
    }

    #[inline]
    pub(crate) fn uncommit(&self, guard: &Guard<'_>, number: usize, object: Cached) {
        let class = &self.classes[number];
        if !guard.lane.tcache.push(number, class, object) {
            self.spill(guard, number, class, object);
        }
    }

    #[cold]
    fn spill(&self, guard: &Guard<'_>, number: usize, class: &Class, object: Cached) {
        let mut objects = Vec::with_capacity(class.cached as usize);
        guard.lane.tcache.drain(number, class, object.stripe(class), class.cached / 2, &mut objects);
        if !guard.lane.tcache.push(number, class, object) {
            objects.push(object);
        }
        self.release(guard, number, &objects);
    }

    pub(crate) fn empty_cache(&self, guard: &Guard<'_>, number: usize) {
        let class = &self.classes[number];
        let mut objects = Vec::new();
        for stripe in 0..class.stripes {
            guard.lane.tcache.drain(number, class, stripe, class.cached, &mut objects);
        }
        self.release(guard, number, &objects);
    }

    pub(crate) fn release(&self, guard: &Guard<'_>, number: usize, objects: &[Cached]) {
        let class = &self.classes[number];
        let mut crowded = None;
        let mut held = None;
        let are_alike = |a: &Cached, b: &Cached| a.at() / UNIT == b.at() / UNIT && !a.is_guest() && !b.is_guest();
        for alike in objects.chunk_by(are_alike) {
            let object = alike[0];
            // A slab with taken objects keeps its place.
            let Some(tag) = self.units.get(object.at()) else { continue };
            if held.as_ref().is_none_or(|(arena, _)| *arena != tag.arena) {
                // One lock at a time.
                drop(held.take());
                held = Some((tag.arena, self.lock_arena(tag.arena)));
            }
            let Some((arena, slabs)) = &mut held else { continue };
            if object.is_guest() {
                slabs.release_guest(tag.slab, &self.classes[tag.class], object.as_guest());
            } else {
                slabs.release(tag.slab, class, alike.iter().map(|object| object.mid()));
            }
            if slabs.is_crowded(tag.slab) {
                crowded = Some((*arena, tag.class));
            }
        }
        drop(held);
        if let Some((arena, number)) = crowded {
            self.retire(guard, arena, number);
        }
    }

    pub(crate) fn retire(&self, guard: &Guard<'_>, arena: usize, number: usize) -> bool {
        let mut slabs = self.lock_arena(arena);
        let Some(index) = slabs.spare(number) else { return false };
        let at = slabs.slabs[index].at;
        let Ok(plan) = self.extents.plan_free(&self.medium, at / PAGE) else { return false };
        slabs.remove(index);
        self.units.set(at, None);
        drop(slabs);
        let (home, value) = (plan.home.at, plan.home.value);
        let redo = Redo { kind: Kind::FreeSlab, slot: 0, old: at, new: 0, home, value, len: plan.pages };
        self.commit_aside(guard, redo);
        self.extents.finish_free(&self.medium, &plan, self.epoch_of(guard));
        true
    }

    pub(crate) fn bit(&self, slab: u64, class: &Class, index: u32) -> (u64, u64) {
        bit_of(slab, class.mid_of(index))
    }
}

/// An allocation's slot held `old`; a free's holds the guest.
fn redo_guest(kind: Kind, slot: u64, old: u64, object: Cached) -> Redo {
    let at = object.at();
    let [(home, _), _] = object.as_guest().homes(at & !(UNIT - 1));
    let (old, new) = if kind == Kind::AllocGuest { (old, at) } else { (at, 0) };
    Redo { kind, slot, old, new, home, value: 0, len: object.as_guest().granules * 2 }
}

/// Of a line that frees an extent.
fn plan_of(redo: &Redo) -> Plan {
    Plan { page: redo.old / PAGE, pages: redo.len, home: Home { at: redo.home, value: redo.value } }
}
