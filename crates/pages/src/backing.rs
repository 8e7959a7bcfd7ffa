//! Which hugepages of the heap the machine backs by hugepages.
//!
//! **What.** A small heap stays on small pages in any system mode: a partly used hugepage costs 2
//! MiB. From [`HugeBacking::from`] on hugepages are advised before their first touch, ten times
//! cheaper than a later collapse ([`crate::collapse`]). A hugepage is assumed to come whole, and
//! checked later, a few at a time: the system may have had none, or have split it, as after a fork.
//! Broken hugepages are *guarded*: advised against hugepages, so that the system does not refill
//! released pages.
//!
//! **Invariants.** P9 the budget counts the guards.
//!
//! **Failure.** A system without hugepages shows in [`Floor::advise`]. It is asked again each
//! minute, since its mode can change.

use crate::huge_allocator::LONG;
use crate::tracker::{Left, Place, Tracker, Trackers};
use crate::trust::{Choice, Seen, Trust};
use core::marker::PhantomData;
use core::ops::Range;
use craton_base::{Advice, Ask, Bytes, Floor, Geometry, HugePageId, HugePages, Pages};

/// The hugepage of the region from which hugepages are requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HugeBacking {
    /// That hugepage; `HugePageId(u32::MAX)` for never.
    pub from: HugePageId,
}

impl HugeBacking {
    /// Small heaps stay on small pages: a partly used hugepage wastes at most 1/8 of 16 MiB.
    pub const AUTO: Self = Self { from: HugePageId(8) };
    /// From the first byte.
    pub const ALWAYS: Self = Self { from: HugePageId(0) };
    /// Not at all.
    pub const NEVER: Self = Self { from: HugePageId(u32::MAX) };
}

/// Most guards. Each can split a kernel mapping in three, and a process may have 65,530.
const MOST_GUARDS: u32 = 2048;
/// Most hugepages at the region's front that long spans avoid.
const MOST_LEFT_OUT: u32 = 64;
/// Neighbouring hugepages checked in a step of a tick: one or two system calls; and steps.
const LOOKED_UP: u32 = 32;
const LOOK_UPS: u32 = 8;
/// Ticks between two queries of a system that gave no hugepages.
const ASK_AGAIN: u32 = 64;

/// Unused hugepages left on small pages with those before them.
const MOST_UNUSED: u32 = 7;

/// Most ranges of hugepages left on small pages: each splits a kernel mapping.
const MOST_SMALL_RANGES: u32 = 4096;

/// The span for which hugepages were taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) pages: Pages,
    /// Of a slab of many small objects, which fills up.
    pub(crate) fills_up: bool,
    /// It begins on small pages, for a collapse later.
    pub(crate) later: bool,
}

/// The requests for hugepages, and their results.
pub(crate) struct Backing<G> {
    wanted: HugeBacking,
    trust: Trust,
    /// Hugepages left on small pages, and the ranges that they form.
    small: u32,
    small_ranges: u32,
    /// Of these, hugepages found dense since the last round of collapses.
    dense_small: u32,
    granted: u32,
    /// The system ignores advice: its mode is `never`, or it has no hugepages.
    in_vain: bool,
    guards: u32,
    vain_ticks: u32,
    /// The system does not report residency.
    untold: bool,
    look_up: u32,
    /// Steps of this tick.
    look_ups: u32,
    geometry: PhantomData<G>,
}

impl<G: Geometry> Backing<G> {
    pub(crate) const fn new(wanted: HugeBacking) -> Self {
        Self {
            wanted,
            trust: Trust::NONE,
            small: 0,
            small_ranges: 0,
            dense_small: 0,
            granted: 0,
            in_vain: false,
            guards: 0,
            vain_ticks: 0,
            untold: false,
            look_up: 0,
            look_ups: 0,
            geometry: PhantomData,
        }
    }

    pub(crate) fn wanted(&self) -> HugeBacking {
        self.wanted
    }

    /// Whether spans of a length were seen to be sparse.
    pub(crate) fn is_sparse(&self, pages: Pages) -> bool {
        self.trust.is_sparse(pages)
    }

    pub(crate) fn is_in_vain(&self) -> bool {
        self.in_vain
    }

    pub(crate) fn guarded(&self) -> HugePages {
        HugePages(self.guards)
    }

    pub(crate) fn left_small(&self) -> HugePages {
        HugePages(self.small)
    }

    /// Hugepages left on small pages that the program has filled since the last round of collapses.
    pub(crate) fn dense_small(&self) -> HugePages {
        HugePages(self.dense_small)
    }

    /// A round of collapses begins.
    pub(crate) fn forget_dense_small(&mut self) {
        self.dense_small = 0;
    }

    /// Hugepages at the region's front that long spans avoid, since those stay on small pages.
    pub(crate) fn front(&self) -> u32 {
        if self.wanted.from.0 <= MOST_LEFT_OUT { self.wanted.from.0 } else { 0 }
    }

    /// Whether hugepages are requested: past the threshold, or by growth or a collapse; not if
    /// guarded, or left on small pages.
    pub(crate) fn asks_for(&self, id: HugePageId, t: &Tracker<G>) -> bool {
        t.collapsing || !t.guarded && if id >= self.wanted.from { !t.is_small() } else { t.asked }
    }

    /// Whether an unbacked hugepage will become huge at its first touch.
    pub(crate) fn will_be_huge(&self, id: HugePageId, t: &Tracker<G>) -> bool {
        !self.in_vain && self.asks_for(id, t)
    }

    /// The advice for a hugepage without an owner's own.
    pub(crate) fn usual(&self, id: HugePageId, t: &Tracker<G>) -> Advice {
        if id >= self.wanted.from && !t.is_small() { Advice::Huge } else { Advice::Small }
    }

    /// Sets the threshold, and advises granted memory anew.
    pub(crate) fn set(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        granted: HugePages,
        backing: HugeBacking,
    ) {
        let old = core::mem::replace(&mut self.wanted, backing);
        if old.from.0 < backing.from.0 {
            self.advise(floor, old.from, HugePageId(backing.from.0.min(granted.0)), Advice::Small);
        } else {
            self.advise(floor, backing.from, HugePageId(old.from.0.min(granted.0)), Advice::Huge);
        }
        // That overwrote the advice of guards, and of hugepages requested for a collapse.
        for id in (0..granted.0).map(HugePageId) {
            if trackers[id.0 as usize].is_small() {
                self.note_left(trackers, id.0, Left::Not);
                if id >= backing.from {
                    floor.advise(G::range(id), Advice::Huge);
                }
            }
            let t = &mut trackers[id.0 as usize];
            if core::mem::take(&mut t.asked) && id < backing.from {
                floor.advise(G::range(id), Advice::Small);
            }
            if t.collapsing && id < backing.from {
                floor.advise(G::range(id), Advice::Huge);
            }
            if self.guards > 0 && core::mem::take(&mut t.guarded) {
                self.guards -= 1;
                if id >= backing.from {
                    floor.advise(G::range(id), Advice::Huge);
                }
            }
        }
    }

    pub(crate) fn grown(&mut self, floor: &mut impl Floor, old: HugePages, granted: HugePages) {
        self.granted = granted.0;
        let from = HugePageId(self.wanted.from.0.max(old.0));
        self.advise(floor, from, HugePageId(granted.0), Advice::Huge);
    }

    fn advise(&mut self, floor: &mut impl Floor, from: HugePageId, to: HugePageId, advice: Advice) {
        if from < to {
            let heeded = floor.advise(G::run(from, HugePages(to.0 - from.0)), advice);
            if advice == Advice::Huge {
                self.in_vain = !heeded;
            }
        }
    }

    /// Records the backing that unbacked hugepages, just taken for a span, will get; `demand`
    /// hugepages are in use with them.
    pub(crate) fn expect(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        taken: (HugePageId, HugePages),
        span: Use,
        demand: HugePages,
    ) {
        self.ask(trackers, floor, taken, span, demand);
        for id in (taken.0.0..taken.0.0 + taken.1.0).map(HugePageId) {
            let t = &mut trackers[id.0 as usize];
            if t.backed_pages() == 0 {
                t.intact = self.will_be_huge(id, t);
            }
        }
    }

    /// Whether hugepages of such spans are expected to fill.
    pub(crate) fn trusts(&self, span: Use) -> bool {
        span.fills_up || self.trust.is_dense(span.pages)
    }

    /// Asks for hugepages where a span begins to use memory, or leaves it on small pages.
    pub(crate) fn ask(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        (first, len): (HugePageId, HugePages),
        span: Use,
        demand: HugePages,
    ) {
        if len.0 == 0 {
            return;
        }
        let ids = first.0..first.0 + len.0;
        let always = self.wanted == HugeBacking::ALWAYS;
        let choice = if always || span.fills_up {
            Choice::Huge
        } else {
            self.review(trackers, floor, span.pages);
            self.trust.decide(span.pages, len)
        };
        let left = match choice {
            Choice::Small => Left::Unsure,
            // Of a longer one only a hugepage is left small.
            Choice::Probe if len.0 == 1 => Left::Unsure,
            _ if always || !span.later => Left::Not,
            _ => Left::Later,
        };
        if first < self.wanted.from {
            let demand = match left {
                Left::Not if G::hugepages_up(span.pages) >= LONG => HugePages(u32::MAX),
                Left::Not | Left::Later => demand,
                Left::Unsure => HugePages(0),
            };
            self.ask_in_front(trackers, floor, (first, len), demand);
        }
        // In front all begin small.
        let mut at = if left == Left::Later { ids.start.max(self.wanted.from.0) } else { ids.start };
        while at < ids.end {
            // One call for all that lie together. A collapse keeps its advice until its end.
            let is_free = |t: &Tracker<G>| t.backed_pages() == 0 && !t.collapsing;
            let run = (at..ids.end).take_while(|i| is_free(&trackers[*i as usize])).count() as u32;
            self.leave(trackers, floor, at..at + run, left, choice == Choice::Small);
            at += run.max(1);
        }
        self.look_later(trackers, floor, (first, len), span.pages, choice);
    }

    /// Schedules a check of a span's hugepages: one of a probe on small pages, and two of a span
    /// left on small pages as a whole.
    fn look_later(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        (first, len): (HugePageId, HugePages),
        pages: Pages,
        choice: Choice,
    ) {
        if choice == Choice::Huge {
            return;
        }
        let places = self.trust.places(pages, len);
        let most = if choice == Choice::Probe || len.0 == 1 { 1 } else { 2 };
        for i in places[..most].iter().map(|place| first.0 + place) {
            let t = &trackers[i as usize];
            if t.backed_pages() > 0 || t.collapsing {
                continue;
            }
            self.leave(trackers, floor, i..i + 1, Left::Unsure, false);
            self.trust.left_small(pages, HugePageId(i));
        }
    }

    /// Looks at hugepages that spans of that length left on small pages.
    pub(crate) fn review(&mut self, trackers: &Trackers<G>, floor: &impl Floor, pages: Pages) {
        self.dense_small += self.trust.review(pages, |id| see(floor, id, &trackers[id.0 as usize]));
    }

    /// Leaves hugepages without memory on small pages, or no longer; with `more` a few behind too.
    fn leave(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, run: Range<u32>, left: Left, more: bool) {
        let is_full = left != Left::Not && self.small_ranges >= MOST_SMALL_RANGES;
        if is_full || run.clone().all(|i| trackers[i as usize].left == left) {
            return;
        }
        let run = if more { run.start..self.end_of_unused(trackers, run.end) } else { run };
        // Those before the threshold are on small pages anyway.
        let from = run.start.max(self.wanted.from.0);
        if from < run.end {
            let advice = if left == Left::Not { Advice::Huge } else { Advice::Small };
            floor.advise(G::run(HugePageId(from), HugePages(run.end - from)), advice);
        }
        run.for_each(|i| self.note_left(trackers, i, left));
    }

    /// The end of the unused hugepages from `at`, a few at most: one call leaves them small too.
    fn end_of_unused(&self, trackers: &Trackers<G>, at: u32) -> u32 {
        let is_unused = |t: &Tracker<G>| t.place == Place::Unbacked && !(t.is_small() || t.collapsing || t.guarded);
        let end = self.granted.min(at + MOST_UNUSED);
        (at..end).find(|i| !is_unused(&trackers[*i as usize])).unwrap_or(end.max(at))
    }

    /// Sets a hugepage's mark, and counts the ranges of marked ones.
    fn note_left(&mut self, trackers: &mut Trackers<G>, i: u32, left: Left) {
        let was_small = trackers[i as usize].is_small();
        trackers[i as usize].left = left;
        let small = left != Left::Not;
        if small == was_small {
            return;
        }
        let is_small = |i: u32| i < self.granted && trackers[i as usize].is_small();
        let neighbours = u32::from(is_small(i.wrapping_sub(1))) + u32::from(is_small(i + 1));
        self.small = if small { self.small + 1 } else { self.small - 1 };
        // Marked: 1 more, less one for each neighbour that it joins. Unmarked: the reverse.
        self.small_ranges = if small { self.small_ranges + 1 - neighbours } else { self.small_ranges + neighbours - 1 };
    }

    /// Requests a hugepage at the region's front if the heap is no longer small; reverts that for
    /// later spans when the heap is small again.
    fn ask_in_front(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        (first, len): (HugePageId, HugePages),
        demand: HugePages,
    ) {
        let from = self.wanted.from;
        for i in first.0..(first.0 + len.0).min(from.0) {
            let t = &mut trackers[i as usize];
            let ask = demand.0 > if t.asked { from.0 / 2 } else { from.0 };
            if ask != t.asked && t.backed_pages() == 0 && !t.guarded && !t.collapsing {
                t.asked = ask;
                let advice = if ask { Advice::Huge } else { Advice::Small };
                self.advise(floor, HugePageId(i), HugePageId(i + 1), advice);
            }
        }
    }

    /// Guards a hugepage that is broken, or about to be.
    pub(crate) fn guard(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        if self.guards < MOST_GUARDS && self.will_be_huge(id, t) {
            floor.advise(G::range(id), Advice::Small);
            t.guarded = true;
            self.guards += 1;
        }
    }

    pub(crate) fn unguard(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        first: HugePageId,
        len: HugePages,
    ) {
        if self.guards == 0 {
            return;
        }
        for id in (first.0..first.0 + len.0).map(HugePageId) {
            if core::mem::take(&mut trackers[id.0 as usize].guarded) {
                self.guards -= 1;
                floor.advise(G::range(id), Advice::Huge);
            }
        }
    }

    /// Requests a hugepage for a collapse: it stays backed until [`Self::end_collapse`].
    pub(crate) fn begin_collapse(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let guarded = core::mem::take(&mut t.guarded);
        if guarded || t.is_small() || id < self.wanted.from {
            self.guards -= u32::from(guarded);
            floor.advise(G::range(id), Advice::Huge);
        }
        t.collapsing = true;
    }

    /// After any collapse: guards a broken hugepage; a small heap's next touch gets small pages.
    pub(crate) fn end_collapse(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, id: HugePageId) {
        if trackers[id.0 as usize].intact {
            self.note_left(trackers, id.0, Left::Not);
        } else if trackers[id.0 as usize].is_small() && id >= self.wanted.from {
            floor.advise(G::range(id), Advice::Small);
        } else if trackers[id.0 as usize].broken {
            self.guard(trackers, floor, id);
        }
        if id < self.wanted.from && !trackers[id.0 as usize].asked {
            floor.advise(G::range(id), Advice::Small);
        }
    }

    /// Checks some hugepages expected whole: `in_parts` gets the others with their resident bytes.
    /// Now and then queries a system that gave none; `true` if it does now.
    pub(crate) fn look_up(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        granted: HugePages,
        mut in_parts: impl FnMut(&mut Trackers<G>, HugePageId, Bytes),
    ) -> bool {
        if granted.0 == 0 {
            return false;
        }
        if self.in_vain {
            return self.ask_again(trackers, floor, granted);
        }
        let first = HugePageId(self.look_up % granted.0);
        let len = HugePages(LOOKED_UP.min(granted.0 - first.0));
        self.look_up = first.0 + len.0;
        self.look_ups = (self.look_ups + 1) % LOOK_UPS;
        let ids = || (first.0..first.0 + len.0).map(HugePageId);
        let whole = ids().filter(|id| trackers[id.0 as usize].intact).count();
        if whole == 0 || self.untold {
            return false;
        }
        let Some(huge) = floor.residency(G::run(first, len), Ask::Huge).huge_bytes else {
            self.untold = true;
            return false;
        };
        if huge >= whole * G::pages(HugePages(1)).bytes().0 {
            return false;
        }
        for id in ids() {
            let t = &trackers[id.0 as usize];
            if !t.intact || t.collapsing {
                continue;
            }
            let seen = floor.residency(G::range(id), Ask::Both);
            // An untouched hugepage may still come whole.
            if seen.huge_bytes == Some(0) && seen.resident_bytes > 0 {
                in_parts(trackers, id, Bytes(seen.resident_bytes));
            }
        }
        false
    }

    /// Whether [`Self::look_up`] has more to check in this tick, which ends with the region.
    pub(crate) fn has_more(&mut self, granted: HugePages) -> bool {
        if self.in_vain || self.untold || self.look_up >= granted.0 {
            self.look_ups = 0;
        }
        self.look_ups > 0
    }

    /// Queries a system that gave no hugepages.
    fn ask_again(&mut self, trackers: &Trackers<G>, floor: &mut impl Floor, granted: HugePages) -> bool {
        self.vain_ticks += 1;
        let last = HugePageId(granted.0 - 1);
        let asks =
            self.vain_ticks.is_multiple_of(ASK_AGAIN) && last >= self.wanted.from && !trackers[last.0 as usize].guarded;
        if asks {
            self.advise(floor, last, HugePageId(granted.0), Advice::Huge);
            if trackers[last.0 as usize].is_small() {
                floor.advise(G::range(last), Advice::Small);
            }
        }
        asks
    }
}

/// How densely a hugepage on small pages is touched, of what was handed out of it.
fn see<G: Geometry>(floor: &impl Floor, id: HugePageId, t: &Tracker<G>) -> Seen {
    if t.intact || t.backed_pages() == 0 {
        return Seen::Gone;
    }
    Seen::of(floor.residency(G::range(id), Ask::Resident).resident_bytes, Pages(t.backed_pages()).bytes().0)
}

#[cfg(test)]
mod tests;
