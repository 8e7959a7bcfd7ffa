//! Extents by first fit, and a table of their entries in place of a log.
//!
//! **What.** Ranges of 4 KiB pages. The table is the first unit of the data: a word for each
//! extent, 0 when it is free. **Invariants.** *E1* extents and free ranges cover the data once.
//! **Failure.** A request that does not fit grows the medium, or is refused.

use crate::error::Error;
use crate::layout::{PAGE, PAGES_PER_UNIT};
use craton_base::{Medium, Space};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What an extent holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtentKind {
    /// One large object.
    Object,
    /// A slab; aligned to a unit.
    Slab,
}

/// A range of pages in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub page: u64,
    pub pages: u32,
    pub kind: ExtentKind,
}

/// A word of the persistent record, and what it shall become when the operation commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    pub at: u64,
    pub value: u64,
}

/// A change that is not committed yet. Its pages belong to the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub page: u64,
    pub pages: u32,
    pub home: Home,
}

#[derive(Default)]
struct State {
    /// By first page: pages, kind, slot of the entry.
    used: BTreeMap<u64, (u32, ExtentKind, u64)>,
    /// By first page.
    free: BTreeMap<u64, u64>,
    slots: Vec<u64>,
    /// One behind the last page of the medium that is managed.
    end: u64,
}

pub struct Extents {
    state: Mutex<State>,
    /// The table's first page.
    first: u64,
    most: u64,
}

const STEP: u64 = 64;

impl Extents {
    /// Manages the pages of `data..most` bytes.
    pub fn new(data: u64, most: u64) -> Self {
        Self { state: Mutex::default(), first: data / PAGE, most: most / PAGE }
    }

    /// Writes an empty record; the caller flushes nothing.
    pub fn create<M: Medium + Space>(&self, medium: &M) -> Result<(), Error> {
        let (from, to) = (self.first * PAGE, (self.first + u64::from(PAGES_PER_UNIT)) * PAGE);
        if medium.len() < to {
            medium.resize(to).map_err(|_| Error::NoMemory)?;
        }
        for at in (from..to).step_by(8) {
            medium.store(at, 0);
        }
        for at in (from..to).step_by(64) {
            medium.flush(at);
        }
        medium.fence();
        self.rebuild(medium)
    }

    /// Reads the record, after redo lines were applied to it.
    pub fn rebuild<M: Medium + Space>(&self, medium: &M) -> Result<(), Error> {
        let mut state = State::default();
        let data = self.first + u64::from(PAGES_PER_UNIT);
        for slot in (0..u64::from(PAGES_PER_UNIT) * PAGE / 8).rev() {
            let slot = self.first * PAGE + 8 * slot;
            let word = medium.word(slot).load(core::sync::atomic::Ordering::Relaxed);
            if word == 0 {
                state.slots.push(slot);
                continue;
            }
            let (pages, page) = ((word & 0x3ff_ffff) as u32, word >> 26 & ((1 << 36) - 1));
            let kind = if word >> 62 == 2 { ExtentKind::Slab } else { ExtentKind::Object };
            state.used.insert(page, (pages, kind, slot));
        }
        let mut at = data;
        for (page, (pages, ..)) in &state.used {
            if *page < at || *page + u64::from(*pages) > medium.len() / PAGE {
                return Err(Error::Damaged { what: "an extent overlaps another", at: *page * PAGE });
            }
            if *page > at {
                state.free.insert(at, *page - at);
            }
            at = *page + u64::from(*pages);
        }
        state.end = medium.len() / PAGE;
        if state.end > at {
            state.free.insert(at, state.end - at);
        }
        *self.state() = state;
        Ok(())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn plan_alloc<M: Medium + Space>(&self, medium: &M, pages: u32, kind: ExtentKind) -> Result<Plan, Error> {
        let mut state = self.state();
        let align = if kind == ExtentKind::Slab { u64::from(PAGES_PER_UNIT) } else { 1 };
        let fits = |(page, len): (&u64, &u64)| {
            let begin = page.next_multiple_of(align);
            (begin + u64::from(pages) <= page + len).then_some((*page, *len, begin))
        };
        let mut found = state.free.iter().find_map(fits);
        if found.is_none() {
            let needed = (state.end.next_multiple_of(align) + u64::from(pages)).next_multiple_of(STEP);
            let end = needed.min(self.most);
            if end <= state.end || medium.resize(end * PAGE).is_err() {
                return Err(Error::NoMemory);
            }
            let old = state.end;
            state.end = end;
            state.insert(old, end - old);
            found = state.free.iter().find_map(fits);
        }
        let (page, len, begin) = found.ok_or(Error::NoMemory)?;
        let slot = state.slots.pop().ok_or(Error::NoMemory)?;
        state.free.remove(&page);
        if begin > page {
            state.free.insert(page, begin - page);
        }
        let end = begin + u64::from(pages);
        if end < page + len {
            state.free.insert(end, page + len - end);
        }
        state.used.insert(begin, (pages, kind, slot));
        let code = if kind == ExtentKind::Slab { 2 } else { 1 };
        let value = u64::from(pages) | begin << 26 | code << 62;
        Ok(Plan { page: begin, pages, home: Home { at: slot, value } })
    }

    pub fn plan_free<M: Medium + Space>(&self, _: &M, page: u64) -> Result<Plan, Error> {
        let state = self.state();
        let (pages, _, slot) = *state.used.get(&page).ok_or(Error::NotAnObject { at: page * PAGE })?;
        Ok(Plan { page, pages, home: Home { at: slot, value: 0 } })
    }

    /// A free is committed: its pages serve again.
    pub fn finish_free(&self, plan: &Plan) {
        let mut state = self.state();
        if state.used.remove(&plan.page).is_some() {
            state.slots.push(plan.home.at);
            state.insert(plan.page, u64::from(plan.pages));
        }
    }

    /// A plan is dropped: as before.
    pub fn cancel(&self, plan: &Plan) {
        if plan.home.value != 0 {
            self.finish_free(plan);
        }
    }

    /// All homes of epochs up to this one are durable.
    pub fn settled(&self, _epoch: u64) {}

    /// The extent that holds a page.
    pub fn extent_at(&self, page: u64) -> Option<Extent> {
        let state = self.state();
        let (first, (pages, kind, _)) = state.used.range(..=page).next_back()?;
        (page < first + u64::from(*pages)).then_some(Extent { page: *first, pages: *pages, kind: *kind })
    }

    /// All extents, by address.
    pub fn list(&self) -> Vec<Extent> {
        let state = self.state();
        state.used.iter().map(|(page, (pages, kind, _))| Extent { page: *page, pages: *pages, kind: *kind }).collect()
    }
}

impl State {
    fn insert(&mut self, mut page: u64, mut len: u64) {
        if let Some((before, pages)) = self.free.range(..page).next_back().map(|(a, b)| (*a, *b))
            && before + pages == page
        {
            self.free.remove(&before);
            (page, len) = (before, len + pages);
        }
        if let Some(pages) = self.free.remove(&(page + len)) {
            len += pages;
        }
        self.free.insert(page, len);
    }
}
