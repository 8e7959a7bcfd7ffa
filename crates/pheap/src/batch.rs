//! Several changes as one, with one fence (PMDK's reserve and publish). A crash frees [`Reserved`]
//! objects.
//!
//! **Cost.** A line for each part; two fences where objects must be durable first. No allocation
//! once a thread has had a batch.

use crate::alloc::Found;
use crate::class::{SMALL_MOST, class_of};
use crate::config::Model;
use crate::error::Error;
use crate::extents::Plan;
use crate::heap::{Guard, Heap, Offset, Slot};
use crate::layout::PAGE;
use crate::line::{Kind, PARTS_MOST, Redo};
use crate::spare;
use crate::tcache::Cached;
use craton_base::{Medium, Space};
use std::cell::Cell;

/// Chosen in DRAM. Publish or cancel it: if dropped, it stays taken until the next `open`.
#[must_use]
#[derive(PartialEq, Eq, Debug)]
pub struct Reserved {
    at: u64,
    size: u64,
    pub(crate) what: What,
    /// Words and check, if [`Heap::fill`] has written it.
    pub(crate) contents: Option<(u16, u64)>,
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum What {
    Small(usize, Cached),
    Large(Plan),
}

impl Reserved {
    pub fn at(&self) -> Offset {
        Offset(self.at)
    }

    #[inline]
    fn counted(&self) -> i64 {
        i64::from(matches!(self.what, What::Small(..)))
    }

    /// The bytes that were requested.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Freed by a committed line.
type Freed = (Found, Redo);

/// Parts that are each compared with each other.
const FEW: usize = 15;

thread_local! {
    static PARTS: Cell<Vec<Part>> = const { Cell::new(Vec::new()) };
    static LINES: Cell<Vec<Redo>> = const { Cell::new(Vec::new()) };
    static FREED: Cell<Vec<Freed>> = const { Cell::new(Vec::new()) };
}

pub(crate) enum Part {
    Alloc(Slot, Reserved),
    Free(Slot, u64),
    Set(Slot, u64),
}

impl Part {
    #[inline]
    fn slot(&self) -> Slot {
        match self {
            Self::Alloc(slot, _) | Self::Free(slot, _) | Self::Set(slot, _) => *slot,
        }
    }
}

/// All happen, or none.
pub struct Batch<'a, M: Medium + Space> {
    heap: &'a Heap<M>,
    parts: Vec<Part>,
}

impl<M: Medium + Space> Batch<'_, M> {
    /// The slot has the object once the batch is committed.
    pub fn alloc(&mut self, slot: Slot, size: u64) -> Result<Offset, Error> {
        self.heap.check_slot(slot)?;
        let reserved = self.heap.reserve(size)?;
        let at = reserved.at();
        self.parts.push(Part::Alloc(slot, reserved));
        Ok(at)
    }

    /// Contents that matter are durable already.
    pub fn publish(&mut self, slot: Slot, reserved: Reserved) {
        self.parts.push(Part::Alloc(slot, reserved));
    }

    pub fn free(&mut self, slot: Slot) {
        self.free_and_set(slot, 0);
    }

    /// Stores a value in the slot, such as the next of a list.
    pub fn free_and_set(&mut self, slot: Slot, value: u64) {
        self.parts.push(Part::Free(slot, value));
    }

    pub fn set(&mut self, slot: Slot, value: u64) {
        self.parts.push(Part::Set(slot, value));
    }

    /// An error returns the batch's objects to the heap.
    pub fn commit(mut self) -> Result<(), Error> {
        self.heap.try_parts(&self.parts)?;
        self.parts.clear();
        Ok(())
    }
}

impl<M: Medium + Space> Drop for Batch<'_, M> {
    fn drop(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        self.heap.cancel_parts(parts.drain(..));
        spare::put(&PARTS, parts);
    }
}

impl<M: Medium + Space> Heap<M> {
    /// The most parts of a batch.
    pub fn parts_most(&self) -> usize {
        PARTS_MOST.min(self.sup.half as usize - crate::lane::SPARE as usize)
    }

    pub fn batch(&self) -> Batch<'_, M> {
        Batch { heap: self, parts: spare::take(&PARTS) }
    }

    /// The medium does not change.
    pub fn reserve(&self, size: u64) -> Result<Reserved, Error> {
        match self.try_reserve(size) {
            Err(Error::NoMemory) if self.reclaim() => self.try_reserve(size),
            result => result,
        }
    }

    fn try_reserve(&self, size: u64) -> Result<Reserved, Error> {
        if size.wrapping_sub(1) >= SMALL_MOST {
            let plan = self.plan_large(size)?;
            return Ok(Reserved { at: plan.page * PAGE, size, what: What::Large(plan), contents: None });
        }
        let number = class_of(size);
        let guard = if self.sup.model == Model::Gc { self.enter_cache() } else { self.enter(0) };
        let object = self.cached(&guard, number)?;
        guard.lane.count_reserved(1);
        Ok(Reserved { at: object.at(), size, what: What::Small(number, object), contents: None })
    }

    pub fn cancel(&self, reserved: Reserved) {
        match reserved.what {
            What::Small(number, object) => {
                let guard = self.enter(0);
                guard.lane.count_reserved(-1);
                self.uncommit(&guard, number, object);
            }
            What::Large(plan) => self.extents.cancel(&self.medium, &plan),
        }
    }

    /// Makes the objects durable. The slots' old values are lost.
    pub fn publish(&self, parts: impl IntoIterator<Item = (Slot, Reserved)>) -> Result<(), Error> {
        let mut batch = self.batch();
        for (slot, reserved) in parts {
            self.flush_range(reserved.at, reserved.size);
            batch.publish(slot, reserved);
        }
        self.medium.fence();
        batch.commit()
    }

    /// `init` writes the contents, durable before the slot has the object.
    pub fn alloc_with(&self, slot: Slot, size: u64, init: impl FnOnce(&Self, Offset)) -> Result<Offset, Error> {
        self.check_slot(slot)?;
        let reserved = self.reserve(size)?;
        let at = reserved.at();
        init(self, at);
        self.publish([(slot, reserved)])?;
        Ok(at)
    }

    /// Recovery keeps the store in order with other changes.
    pub fn set(&self, slot: Slot, value: u64) -> Result<(), Error> {
        self.try_parts(&[Part::Set(slot, value)])
    }

    /// Makes the object durable, and frees the one that it replaces.
    pub fn replace(&self, slot: Slot, reserved: Reserved) -> Result<(), Error> {
        if reserved.contents.is_none() {
            self.flush_range(reserved.at, reserved.size);
        }
        self.medium.fence();
        let old = self.check_slot(slot).map(|()| self.load(slot.0));
        match old {
            Ok(0) | Err(_) => self.link([Part::Alloc(slot, reserved)]),
            Ok(old) => self.replace_with(slot, old, reserved, None),
        }
    }

    /// For a slot of the heap itself and its check; the object is durable.
    pub(crate) fn relink(&self, slot: Slot, reserved: Reserved, check: (Slot, u64)) -> Result<(), Error> {
        match self.load(slot.0) {
            0 => self.link([Part::Alloc(slot, reserved), Part::Set(check.0, check.1)]),
            old => self.replace_with(slot, old, reserved, Some(check)),
        }
    }

    /// Keeps contents that fit, durably.
    pub fn realloc(&self, slot: Slot, size: u64) -> Result<Offset, Error> {
        self.check_slot(slot)?;
        let at = self.load(slot.0);
        if at == 0 {
            return self.alloc_to(slot, size);
        }
        let found = self.find(at)?;
        let is_small = (1..=SMALL_MOST).contains(&size);
        let fits = match &found {
            Found::Small { number, .. } => is_small && class_of(size) == *number,
            Found::Old { .. } => false,
            Found::Large { pages, .. } => !is_small && size.div_ceil(PAGE) == u64::from(*pages),
        };
        if fits {
            return Ok(Offset(at));
        }
        let kept = self.room_of(at, &found)?.min(size);
        let reserved = self.reserve(size)?;
        self.copy(at, reserved.at, kept);
        self.flush_range(reserved.at, kept);
        self.medium.fence();
        let new = reserved.at();
        self.replace_with(slot, at, reserved, None)?;
        Ok(new)
    }

    /// An error returns `reserved` to the heap.
    fn replace_with(&self, slot: Slot, old: u64, reserved: Reserved, also: Option<(Slot, u64)>) -> Result<(), Error> {
        let result = self.try_replace(slot, old, &reserved, also);
        if result.is_err() {
            self.cancel(reserved);
        }
        result
    }

    fn try_replace(&self, slot: Slot, old: u64, reserved: &Reserved, also: Option<(Slot, u64)>) -> Result<(), Error> {
        let guard = self.enter(3);
        let found = self.find(old)?;
        let freed = self.redo_free(0, old, &found)?;
        if let Err(error) = self.claim(slot, old, &found) {
            self.cancel_free(&freed);
            return Err(error);
        }
        guard.lane.count_reserved(-reserved.counted());
        let also = also.map(|(slot, value)| Redo::set(slot.0, self.load(slot.0), value));
        let mut lines = [self.redo_reserved(slot.0, old, reserved), freed, freed];
        let parts = if let Some(also) = also {
            lines[2] = also;
            3
        } else {
            2
        };
        self.commit(guard, &lines[..parts], &[(found, freed)]);
        Ok(())
    }

    fn redo_reserved(&self, slot: u64, old: u64, reserved: &Reserved) -> Redo {
        match &reserved.what {
            What::Small(number, object) => self.redo_alloc(slot, old, *number, *object),
            What::Large(plan) => self.redo_large(slot, old, plan),
        }
    }

    pub(crate) fn cancel_parts(&self, parts: impl Iterator<Item = Part>) {
        for part in parts {
            if let Part::Alloc(_, reserved) = part {
                self.cancel(reserved);
            }
        }
    }

    pub(crate) fn link<const N: usize>(&self, parts: [Part; N]) -> Result<(), Error> {
        let result = self.try_parts(&parts);
        if result.is_err() {
            self.cancel_parts(parts.into_iter());
        }
        result
    }

    pub(crate) fn try_parts(&self, parts: &[Part]) -> Result<(), Error> {
        if parts.len() > self.parts_most() {
            return Err(Error::TooMany { parts: parts.len(), most: self.parts_most() });
        }
        if parts.is_empty() {
            return Ok(());
        }
        parts.iter().try_for_each(|part| self.check_any_slot(part.slot()))?;
        check_distinct(parts, |part| part.slot().0)?;
        let guard = self.enter(parts.len() as u32);
        let (mut lines, mut freed) = (spare::take(&LINES), spare::take(&FREED));
        let result = self.lines_of(parts, &mut lines, &mut freed).and_then(|()| self.claim_all(&freed));
        if result.is_err() {
            freed.iter().for_each(|(_, redo)| self.cancel_free(redo));
            return result;
        }
        let counted = parts.iter().map(|part| if let Part::Alloc(_, there) = part { there.counted() } else { 0 });
        guard.lane.count_reserved(-counted.sum::<i64>());
        self.commit(guard, &lines, &freed);
        spare::put(&LINES, lines);
        spare::put(&FREED, freed);
        Ok(())
    }

    fn lines_of(&self, parts: &[Part], lines: &mut Vec<Redo>, freed: &mut Vec<Freed>) -> Result<(), Error> {
        for part in parts {
            let slot = part.slot().0;
            let old = self.load(slot);
            lines.push(match part {
                Part::Alloc(_, reserved) => self.redo_reserved(slot, old, reserved),
                Part::Set(_, value) => Redo::set(slot, old, *value),
                Part::Free(..) if old == 0 => return Err(Error::Null { slot }),
                Part::Free(_, value) => {
                    let found = self.find(old)?;
                    let redo = Redo { new: *value, ..self.redo_free(slot, old, &found)? };
                    freed.push((found, redo));
                    redo
                }
            });
        }
        check_distinct(freed, |(_, redo)| redo.old)
    }

    /// All, or none.
    fn claim_all(&self, freed: &[Freed]) -> Result<(), Error> {
        for (i, (found, redo)) in freed.iter().enumerate() {
            if let Err(error) = self.claim(Slot(redo.slot), redo.old, found) {
                freed[..i].iter().for_each(|(found, redo)| self.unclaim(redo.old, found));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Words of one line, durable in this order.
    #[inline]
    pub(crate) fn store_durably(&self, words: &[(u64, u64)]) {
        words.iter().for_each(|(at, value)| self.medium.store(*at, *value));
        self.medium.flush(words[0].0);
        self.medium.fence();
    }

    /// The freed objects are claimed.
    pub(crate) fn commit(&self, guard: Guard<'_>, lines: &[Redo], freed: &[Freed]) {
        let unclaim = || freed.iter().for_each(|(found, redo)| self.unclaim(redo.old, found));
        if self.sup.model.is_logged() {
            guard.lane.commit(&self.medium, self.stamp(), lines);
            unclaim();
            freed.iter().for_each(|(found, redo)| self.finish_free(&guard, *found, redo));
            return;
        }
        if let Some(line) = only_store(lines) {
            self.store_durably(&[(line.slot, line.new)]);
            unclaim();
            freed.iter().for_each(|(found, redo)| self.finish_free(&guard, *found, redo));
            return;
        }
        // Later frees of small objects are not logged, so lines of slots must be void before one
        // here is freed or served again.
        let logged: Vec<Redo> = lines.iter().map(without_bits).collect();
        guard.lane.commit(&self.medium, self.stamp(), &logged);
        drop(guard);
        unclaim();
        self.settle();
        let guard = self.enter(1);
        freed.iter().for_each(|(found, redo)| self.finish_free(&guard, *found, redo));
    }
}

/// The line of the one word that an operation of a gc heap stores: it has no bits, so it needs no
/// redo line.
fn only_store(lines: &[Redo]) -> Option<&Redo> {
    let is_small = lines.iter().all(|line| matches!(line.kind, Kind::Alloc | Kind::Free));
    let mut stores = lines.iter().filter(|line| line.slot != 0);
    stores.next().filter(|_| is_small && stores.next().is_none())
}

fn without_bits(line: &Redo) -> Redo {
    match line.kind {
        Kind::Alloc | Kind::Free => Redo::set(line.slot, line.old, line.new),
        _ => *line,
    }
}

fn check_distinct<T>(all: &[T], offset: impl Fn(&T) -> u64) -> Result<(), Error> {
    if all.len() <= FEW {
        for (i, one) in all.iter().enumerate() {
            let at = offset(one);
            if all[..i].iter().any(|other| offset(other) == at) {
                return Err(Error::Twice { at });
            }
        }
        return Ok(());
    }
    let mut sorted: Vec<u64> = all.iter().map(offset).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::Twice { at: pair[0] }),
        None => Ok(()),
    }
}
