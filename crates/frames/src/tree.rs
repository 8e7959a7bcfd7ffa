//! The entries of trees, and the sets that find trees.
//!
//! **State.** `free` 10 bits, in 512ths of a tree, rounded up · `kind` 2 · `reserved` 1.
//! **Invariants.** *F4* When nothing is under way, an unreserved tree is in exactly the set of its
//! class and kind, a reserved one in none. *F5* It is in the set of huge frames if one of its huge
//! frames is wholly free.
//! **Threads.** After changing an entry, a thread moves the tree between two sets and reads the
//! entry again until it is unchanged: the last set written matches. Frees of huge frames note only
//! a tree's first; searches note wholly free trees.

mod rebuild;

use crate::child::Child;
use crate::geometry::Geometry;
use crate::index::{self, Set};
use crate::lower::Lower;
use crate::media::Media;
use crate::word::Word;
use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};

const FREE: u16 = 0x3ff;
const COUNTS: u32 = 0x3ff;
const KIND_AT: u32 = 10;
const RESERVED: u16 = 1 << 12;
pub(crate) const ALL: u16 = 512;

/// Kinds lie on different trees while there is room (LLFree §7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    Movable = 0,
    Unmovable = 1,
    Huge = 2,
}

pub const KINDS: usize = 3;
const ALL_KINDS: [Kind; KINDS] = [Kind::Movable, Kind::Unmovable, Kind::Huge];

impl Kind {
    /// For pages that a kernel frees when memory is short, as its page cache. Whole huge frames
    /// reserve no tree by [`Search::Sets`](crate::Search), so their kind serves smaller orders.
    pub const RECLAIMABLE: Self = Self::Huge;

    pub(crate) fn and_others(self) -> impl Iterator<Item = Kind> {
        core::iter::once(self).chain(ALL_KINDS.into_iter().filter(move |kind| *kind != self))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Full,
    Allocated,
    Partial,
    Free,
    /// Wholly free: of no kind.
    Empty,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry(u16);

impl Entry {
    pub(crate) fn kind(self) -> Kind {
        ALL_KINDS[usize::from(self.0 >> KIND_AT & 3).min(KINDS - 1)]
    }

    pub(crate) fn is_reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// The CPU that reserves a tree counts later.
    pub(crate) fn may_have_free(self) -> bool {
        self.is_reserved() || !self.is_full()
    }

    pub(crate) fn is_full(self) -> bool {
        self.0 & FREE == 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 & FREE == ALL
    }

    fn with(self, free: u16) -> Self {
        Self(self.0 & !FREE | free)
    }

    fn of_kind(self, kind: Kind) -> Self {
        Self(self.0 & !(3 << KIND_AT) | (kind as u16) << KIND_AT)
    }
}

/// In 512ths of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// Fewer free frames: *allocated*.
    pub allocated: u16,
    /// More: *free*.
    pub free: u16,
}

impl Default for Thresholds {
    /// *Free* as LLFree §3.2.2. *Allocated* below 1/64, not 12.5 %: in a zone nine tenths full that
    /// is every used tree, and free ones would serve first.
    fn default() -> Self {
        Self { allocated: ALL / 64, free: ALL - ALL / 8 }
    }
}

const SETS: usize = 3 * KINDS + 2;

pub(crate) struct Trees<'a> {
    pub(crate) entries: &'a [AtomicU16],
    sets: [Set<'a>; SETS],
    thresholds: Thresholds,
}

impl<'a> Trees<'a> {
    pub(crate) const fn words(trees: usize) -> usize {
        index::words(trees, SETS)
    }

    pub(crate) fn new(entries: &'a [AtomicU16], words: &'a [AtomicU64], thresholds: Thresholds) -> Self {
        // Huge frames change the sets on the first of two lines.
        let sets = core::array::from_fn(|i| Set::new(words, entries.len(), (i + SETS - KINDS) % SETS));
        Self { entries, sets, thresholds }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entry(&self, tree: usize) -> Entry {
        Entry(self.entries[tree].read())
    }

    fn update(&self, tree: usize, change: impl Fn(Entry) -> Option<Entry>) -> Option<Entry> {
        let mut old = self.entry(tree);
        loop {
            let new = change(old)?;
            if new == old {
                return Some(old);
            }
            match self.entries[tree].exchange(old.0, new.0) {
                Ok(_) => {
                    self.follow(tree, old, new);
                    return Some(new);
                }
                Err(now) => old = Entry(now),
            }
        }
    }

    pub(crate) fn frames<G: Geometry, M: Media>(tree: usize, lower: &Lower<'_, G, M>) -> usize {
        let sums = Self::children(tree, lower).iter().map(|word| word.read() & (COUNTS << 16 | COUNTS)).sum::<u32>();
        ((sums & 0xffff) + (sums >> 16)) as usize
    }

    /// Rounded up. Frames whose taker may give up count as one.
    pub(crate) fn count<G: Geometry, M: Media>(tree: usize, lower: &Lower<'_, G, M>) -> u16 {
        let words = Self::children(tree, lower).iter().map(|word| word.read());
        let (sums, any) = words.fold((0, 0), |(sums, any), word| (sums + (word & (COUNTS << 16 | COUNTS)), any | word));
        let free = ((sums & 0xffff) + (sums >> 16)) as usize;
        if free == 0 {
            return u16::from((any | any >> 16) as u16 & Child::PENDING != 0);
        }
        (free * usize::from(ALL)).div_ceil(G::TREE) as u16
    }

    fn children<'l, G: Geometry, M: Media>(tree: usize, lower: &Lower<'l, G, M>) -> &'l [AtomicU32] {
        &lower.children[tree * G::CHILDREN / 2..][..G::CHILDREN / 2]
    }

    pub(crate) fn note<G: Geometry, M: Media>(&self, tree: usize, lower: &Lower<'_, G, M>) {
        loop {
            let entry = self.entry(tree);
            let new = entry.with(Self::count(tree, lower));
            if self.class(new) == self.class(entry) {
                return;
            }
            if self.entries[tree].exchange(entry.0, new.0).is_ok() {
                self.follow(tree, entry, new);
                // Searches have passed over full trees only.
                if !new.is_full() {
                    lower.proof.end();
                }
            }
        }
    }

    pub(crate) fn note_as<G: Geometry, M: Media>(&self, tree: usize, free: u16, lower: &Lower<'_, G, M>) {
        let entry = self.entry(tree);
        let new = entry.with(free);
        if self.class(new) != self.class(entry) && self.entries[tree].exchange(entry.0, new.0).is_ok() {
            self.follow(tree, entry, new);
        }
        self.note(tree, lower);
        lower.proof.end();
    }

    pub(crate) fn note_huge<G: Geometry, M: Media>(&self, tree: usize, lower: &Lower<'_, G, M>) {
        let set = self.huge();
        loop {
            let has = Self::has_huge(tree, lower);
            if has && !set.has(tree) {
                set.insert(tree);
                lower.proof.end();
            }
            set.set(tree, has);
            if Self::has_huge(tree, lower) == has {
                return;
            }
        }
    }

    /// True also if one may be free soon. Only a full count has this bit.
    fn has_huge<G: Geometry, M: Media>(tree: usize, lower: &Lower<'_, G, M>) -> bool {
        let either = u32::from(G::FULL_CHILD | Child::PENDING);
        Self::children(tree, lower).iter().any(|word| word.read() & (either << 16 | either) != 0)
    }

    fn class(&self, entry: Entry) -> Class {
        match entry.0 & FREE {
            0 => Class::Full,
            free if free < self.thresholds.allocated => Class::Allocated,
            ALL => Class::Empty,
            free if free <= self.thresholds.free => Class::Partial,
            _ => Class::Free,
        }
    }

    /// Whether free frames, without a free huge frame, can change the class. `None`: reserved. A
    /// CPU that finds a partial tree full counts again.
    #[inline]
    pub(crate) fn can_matter(&self, tree: usize) -> Option<bool> {
        let entry = self.entry(tree);
        if entry.is_reserved() { None } else { Some(self.class(entry) != Class::Partial) }
    }

    pub(crate) fn open_class(&self, tree: usize) -> Option<Class> {
        let entry = self.entry(tree);
        (!entry.is_reserved()).then(|| self.class(entry))
    }

    pub(crate) fn is_nearly_full(&self, tree: usize) -> bool {
        let entry = self.entry(tree);
        !entry.is_reserved() && self.class(entry) == Class::Allocated
    }

    /// Each thread that changes an entry does this, and undoes its insertion if the entry is
    /// another one then.
    fn follow(&self, tree: usize, old: Entry, mut entry: Entry) {
        let mut before = self.own(old);
        loop {
            let own = self.own(entry);
            if own == before {
                return;
            }
            if let Some(before) = before {
                self.sets[before].set(tree, false);
            }
            if let Some(own) = own {
                self.sets[own].set(tree, true);
            }
            (before, entry) = (own, self.entry(tree));
        }
    }

    fn own(&self, entry: Entry) -> Option<usize> {
        if entry.is_reserved() { None } else { Self::number(self.class(entry), entry.kind()) }
    }

    pub(crate) fn reveal<G: Geometry, M: Media>(&self, tree: usize, lower: &Lower<'_, G, M>) {
        if !self.huge().has(tree) {
            self.huge().insert(tree);
        }
        if self.entry(tree).is_full() {
            self.note_as(tree, (G::HUGE * usize::from(ALL)).div_ceil(G::TREE) as u16, lower);
        } else {
            self.note(tree, lower);
        }
    }

    fn number(class: Class, kind: Kind) -> Option<usize> {
        Some(match class {
            Class::Full => return None,
            Class::Allocated => kind as usize,
            Class::Partial => KINDS + kind as usize,
            Class::Free => 2 * KINDS + kind as usize,
            Class::Empty => 3 * KINDS,
        })
    }

    pub(crate) fn of(&self, class: Class, kind: Kind) -> Option<Set<'a>> {
        Self::number(class, kind).map(|number| self.sets[number])
    }

    pub(crate) fn huge(&self) -> Set<'a> {
        self.sets[SETS - 1]
    }

    pub(crate) fn reserve(&self, tree: usize, kind: Kind) -> bool {
        self.update(tree, |entry| (!entry.is_reserved()).then_some(Entry(entry.of_kind(kind).0 | RESERVED))).is_some()
    }

    pub(crate) fn unreserve<G: Geometry, M: Media>(&self, tree: usize, lower: &Lower<'_, G, M>) {
        self.update(tree, |entry| Some(Entry(entry.0 & !RESERVED).with(Self::count(tree, lower))));
        self.note(tree, lower);
        // A failed allocation may have returned its frames last; the next free does not look.
        if !self.huge().has(tree) && Self::has_huge(tree, lower) {
            self.note_huge(tree, lower);
        }
    }

    pub(crate) fn check<G: Geometry, M: Media>(
        &self,
        tree: usize,
        lower: &Lower<'_, G, M>,
    ) -> Result<(), &'static str> {
        let entry = self.entry(tree);
        let own = self.own(entry);
        let is_right = |(number, set): (usize, &Set<'_>)| set.has(tree) == (own == Some(number));
        // Entries lag, but a tree with free frames never counts as full.
        let is_lost = !entry.is_reserved() && self.class(entry) == Class::Full && Self::count(tree, lower) > 0;
        if !self.sets[..SETS - 1].iter().enumerate().all(is_right) || is_lost {
            return Err("F4");
        }
        if Self::has_huge(tree, lower) && !self.huge().has(tree) { Err("F5") } else { Ok(()) }
    }
}
