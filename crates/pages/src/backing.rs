//! Which hugepages of the heap the machine backs by hugepages.
//!
//! A small heap stays on small pages. From [`HugeBacking::from`] on hugepages are advised before
//! their first touch, ten times cheaper than a later collapse. A hugepage counts as whole until
//! checked: the system may have had none, or have split it. Broken hugepages are *guarded*: the
//! system must not refill released pages (P9). A system without hugepages is asked again each
//! minute.

use crate::huge_allocator::LONG;
use crate::tracker::{Left, Place, Tracker, Trackers};
use crate::trust::{Choice, Seen, Trust};
use core::marker::PhantomData;
use core::ops::Range;
use craton_base::{Advice, Ask, Bytes, Floor, Geometry, HugePageId, HugePages, Pages};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HugeBacking {
    /// `HugePageId(u32::MAX)`: never.
    pub from: HugePageId,
}

impl HugeBacking {
    /// A partly used hugepage wastes at most 1/8 of 16 MiB.
    pub const AUTO: Self = Self { from: HugePageId(8) };
    pub const ALWAYS: Self = Self { from: HugePageId(0) };
    pub const NEVER: Self = Self { from: HugePageId(u32::MAX) };
}

/// Each can split a kernel mapping in three; a process may have 65,530.
const MOST_GUARDS: u32 = 2048;
/// Long spans avoid them.
const MOST_LEFT_OUT: u32 = 64;
/// A step is one or two system calls.
const LOOKED_UP: u32 = 32;
const LOOK_UPS: u32 = 8;
/// Ticks.
const ASK_AGAIN: u32 = 64;

const MOST_UNUSED: u32 = 7;

/// Each splits a kernel mapping.
const MOST_SMALL_RANGES: u32 = 4096;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) pages: Pages,
    /// A slab of many small objects.
    pub(crate) fills_up: bool,
    /// Begins on small pages, for a later collapse.
    pub(crate) later: bool,
}

pub(crate) struct Backing<G> {
    wanted: HugeBacking,
    trust: Trust,
    small: u32,
    small_ranges: u32,
    /// Found dense since the last round of collapses.
    dense_small: u32,
    granted: u32,
    /// The mode is `never`, or there are no hugepages.
    in_vain: bool,
    guards: u32,
    vain_ticks: u32,
    /// The system does not report residency.
    untold: bool,
    look_up: u32,
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

    pub(crate) fn dense_small(&self) -> HugePages {
        HugePages(self.dense_small)
    }

    pub(crate) fn forget_dense_small(&mut self) {
        self.dense_small = 0;
    }

    /// On small pages; long spans avoid them.
    pub(crate) fn front(&self) -> u32 {
        if self.wanted.from.0 <= MOST_LEFT_OUT { self.wanted.from.0 } else { 0 }
    }

    /// Not if guarded or left on small pages.
    pub(crate) fn is_requested(&self, id: HugePageId, t: &Tracker<G>) -> bool {
        t.collapsing || !t.guarded && if id >= self.wanted.from { !t.is_small() } else { t.asked }
    }

    pub(crate) fn will_be_huge(&self, id: HugePageId, t: &Tracker<G>) -> bool {
        !self.in_vain && self.is_requested(id, t)
    }

    /// Without an owner's advice.
    pub(crate) fn usual(&self, id: HugePageId, t: &Tracker<G>) -> Advice {
        if id >= self.wanted.from && !t.is_small() { Advice::Huge } else { Advice::Small }
    }

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
        // They had their own advice.
        for id in (0..granted.0).map(HugePageId) {
            if trackers[id.0 as usize].is_small() {
                self.record_left(trackers, id.0, Left::Not);
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

    /// `demand` includes them.
    pub(crate) fn expect(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        taken: (HugePageId, HugePages),
        span: Use,
        demand: HugePages,
    ) {
        self.advise_span(trackers, floor, taken, span, demand);
        for id in (taken.0.0..taken.0.0 + taken.1.0).map(HugePageId) {
            let t = &mut trackers[id.0 as usize];
            if t.backed_pages() == 0 {
                t.intact = self.will_be_huge(id, t);
            }
        }
    }

    pub(crate) fn trusts(&self, span: Use) -> bool {
        span.fills_up || self.trust.is_dense(span.pages)
    }

    pub(crate) fn advise_span(
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
            // Only one hugepage of a longer span is left small.
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
            self.advise_front(trackers, floor, (first, len), demand);
        }
        let mut at = if left == Left::Later { ids.start.max(self.wanted.from.0) } else { ids.start };
        while at < ids.end {
            // A collapse keeps its advice until its end.
            let is_free = |t: &Tracker<G>| t.backed_pages() == 0 && !t.collapsing;
            let run = (at..ids.end).take_while(|i| is_free(&trackers[*i as usize])).count() as u32;
            self.leave(trackers, floor, at..at + run, left, choice == Choice::Small);
            at += run.max(1);
        }
        self.schedule_check(trackers, floor, (first, len), span.pages, choice);
    }

    /// One hugepage of a probe; two of a wholly small span.
    fn schedule_check(
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

    pub(crate) fn review(&mut self, trackers: &Trackers<G>, floor: &impl Floor, pages: Pages) {
        self.dense_small += self.trust.review(pages, |id| see(floor, id, &trackers[id.0 as usize]));
    }

    /// `more`: a few behind too.
    fn leave(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, run: Range<u32>, left: Left, more: bool) {
        let is_full = left != Left::Not && self.small_ranges >= MOST_SMALL_RANGES;
        if is_full || run.clone().all(|i| trackers[i as usize].left == left) {
            return;
        }
        let run = if more { run.start..self.end_of_unused(trackers, run.end) } else { run };
        let from = run.start.max(self.wanted.from.0);
        if from < run.end {
            let advice = if left == Left::Not { Advice::Huge } else { Advice::Small };
            floor.advise(G::run(HugePageId(from), HugePages(run.end - from)), advice);
        }
        run.for_each(|i| self.record_left(trackers, i, left));
    }

    /// One call leaves them small too.
    fn end_of_unused(&self, trackers: &Trackers<G>, at: u32) -> u32 {
        let is_unused = |t: &Tracker<G>| t.place == Place::Unbacked && !(t.is_small() || t.collapsing || t.guarded);
        let end = self.granted.min(at + MOST_UNUSED);
        (at..end).find(|i| !is_unused(&trackers[*i as usize])).unwrap_or(end.max(at))
    }

    fn record_left(&mut self, trackers: &mut Trackers<G>, i: u32, left: Left) {
        let was_small = trackers[i as usize].is_small();
        trackers[i as usize].left = left;
        let small = left != Left::Not;
        if small == was_small {
            return;
        }
        let is_small = |i: u32| i < self.granted && trackers[i as usize].is_small();
        let neighbours = u32::from(is_small(i.wrapping_sub(1))) + u32::from(is_small(i + 1));
        self.small = if small { self.small + 1 } else { self.small - 1 };
        // Marked: 1 more, less one for each joined neighbour. Unmarked: the reverse.
        self.small_ranges = if small { self.small_ranges + 1 - neighbours } else { self.small_ranges + neighbours - 1 };
    }

    /// Advises the front once the heap is no longer small; reverts that when it is small again.
    fn advise_front(
        &mut self,
        trackers: &mut Trackers<G>,
        floor: &mut impl Floor,
        (first, len): (HugePageId, HugePages),
        demand: HugePages,
    ) {
        let from = self.wanted.from;
        for i in first.0..(first.0 + len.0).min(from.0) {
            let t = &mut trackers[i as usize];
            let advise = demand.0 > if t.asked { from.0 / 2 } else { from.0 };
            if advise != t.asked && t.backed_pages() == 0 && !t.guarded && !t.collapsing {
                t.asked = advise;
                let advice = if advise { Advice::Huge } else { Advice::Small };
                self.advise(floor, HugePageId(i), HugePageId(i + 1), advice);
            }
        }
    }

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

    pub(crate) fn begin_collapse(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, id: HugePageId) {
        let t = &mut trackers[id.0 as usize];
        let guarded = core::mem::take(&mut t.guarded);
        if guarded || t.is_small() || id < self.wanted.from {
            self.guards -= u32::from(guarded);
            floor.advise(G::range(id), Advice::Huge);
        }
        t.collapsing = true;
    }

    /// Guards a broken hugepage; a small heap's next touch gets small pages.
    pub(crate) fn end_collapse(&mut self, trackers: &mut Trackers<G>, floor: &mut impl Floor, id: HugePageId) {
        if trackers[id.0 as usize].intact {
            self.record_left(trackers, id.0, Left::Not);
        } else if trackers[id.0 as usize].is_small() && id >= self.wanted.from {
            floor.advise(G::range(id), Advice::Small);
        } else if trackers[id.0 as usize].broken {
            self.guard(trackers, floor, id);
        }
        if id < self.wanted.from && !trackers[id.0 as usize].asked {
            floor.advise(G::range(id), Advice::Small);
        }
    }

    /// `in_parts` gets hugepages that did not come whole. `true`: the system gives hugepages again.
    pub(crate) fn verify_some(
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
            return self.query_again(trackers, floor, granted);
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
            // Untouched, it may still come whole.
            if seen.huge_bytes == Some(0) && seen.resident_bytes > 0 {
                in_parts(trackers, id, Bytes(seen.resident_bytes));
            }
        }
        false
    }

    /// In this tick, which ends with the region.
    pub(crate) fn has_more(&mut self, granted: HugePages) -> bool {
        if self.in_vain || self.untold || self.look_up >= granted.0 {
            self.look_ups = 0;
        }
        self.look_ups > 0
    }

    fn query_again(&mut self, trackers: &Trackers<G>, floor: &mut impl Floor, granted: HugePages) -> bool {
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

fn see<G: Geometry>(floor: &impl Floor, id: HugePageId, t: &Tracker<G>) -> Seen {
    if t.intact || t.backed_pages() == 0 {
        return Seen::Gone;
    }
    Seen::of(floor.residency(G::range(id), Ask::Resident).resident_bytes, Pages(t.backed_pages()).bytes().0)
}

#[cfg(test)]
mod tests;
