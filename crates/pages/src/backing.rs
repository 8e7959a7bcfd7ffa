//! Which hugepages of the heap are backed by hugepages of the machine, and how they become so.
//!
//! **What.** A small heap stays on small pages, whatever the system's mode: a hugepage of which a program uses a little costs it
//! 2 MiB. Beyond [`HugeBacking::from`] hugepages are advised before their first touch, which is ten times cheaper than to
//! collapse them later. What is densely used and on small pages all the same (the first hugepages of a heap that grew, those that
//! were broken up and filled again, those for which the system had no hugepage at the time) is collapsed in the background, a few in
//! a round. That a hugepage came as a whole is expected at first, and looked up later, a few at a time: the system may have had
//! none, or have split it since, as after a fork. Hugepages that were broken up on purpose are advised against hugepages, so
//! that the system does not fill again what was released, as long as the budget of mappings allows.
//!
//! **Failure.** A system without hugepages is known by [`Floor::advise`], and nothing is expected of it; every minute it is asked
//! again, since its mode can change. A collapse that fails changes nothing; the next rounds come more slowly when it was for want
//! of frames or took long, and not at all any more where the system does not know it.

use crate::fit::Fit;
use crate::heap::PageHeap;
use crate::tracker::{Place, Tracker};
use craton_base::{
    Advice, Bytes, Clock, CollapseError, Floor, FrameSource, HUGEPAGE_SIZE, HugePageId, HugePages, PAGES_PER_HUGEPAGE,
    Pages,
};

/// From which hugepage of the region on hugepages are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HugeBacking {
    /// The first hugepage that is; `HugePageId(u32::MAX)` for never.
    pub from: HugePageId,
}

impl HugeBacking {
    /// Small heaps stay on small pages: the last, partly used hugepage of a heap of 16 MiB wastes an eighth at the most.
    pub const AUTO: Self = Self { from: HugePageId(8) };
    /// From the first byte.
    pub const ALWAYS: Self = Self { from: HugePageId(0) };
    /// Not at all.
    pub const NEVER: Self = Self { from: HugePageId(u32::MAX) };
}

/// Spans of so many hugepages, 8 MiB, are huge in a small heap too: the last one's rest is an eighth of them on average.
pub(crate) const LONG: HugePages = HugePages(4);
/// Hugepages that may be advised against hugepages at a time. Each can split a mapping of the system's in three, and a process
/// may have 65,530 of them.
const MOST_GUARDS: u32 = 2048;
/// A hugepage with so many used pages is worth a collapse: seven eighths.
const DENSE_PAGES: u32 = PAGES_PER_HUGEPAGE - PAGES_PER_HUGEPAGE / 8;
/// Hugepages that a round looks at, and those of them that it collapses.
const ROUND_LOOKS: u32 = 512;
const ROUND_COLLAPSES: u32 = 4;
/// Hugepages that the system is asked about in a round.
const ROUND_ASKS: u32 = 16;
/// A collapse that takes longer slows the next rounds down; one that takes less than half of it speeds them up.
const SLOW_NS: u64 = 30_000_000;
/// The most rounds that are left out between two.
const MOST_REST: u32 = 128;
/// Neighbouring hugepages that are looked up a tick: what a system call or two can tell.
const LOOKED_UP: u32 = 32;
/// Ticks between two questions to a system that gave no hugepages.
const ASK_AGAIN: u32 = 64;
/// Refusals as unsupported, with no success between them, after which no more collapses are tried.
const ENOUGH_REFUSALS: u32 = 8;

/// How collapses went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollapseStats {
    /// Hugepages that were collapsed.
    pub collapsed: u64,
    /// Refused for want of frames, [`CollapseError::NoMemory`].
    pub no_memory: u64,
    /// Refused as [`CollapseError::Busy`].
    pub busy: u64,
    /// Refused as [`CollapseError::Again`].
    pub again: u64,
    /// Refused as [`CollapseError::Unsupported`].
    pub unsupported: u64,
}

/// The heap's backing.
pub(crate) struct Backing {
    wanted: HugeBacking,
    /// The system does not act on advice: its mode is `never`, or it has no hugepages.
    in_vain: bool,
    guards: u32,
    /// Ticks since it was asked last.
    vain_ticks: u32,
    /// The system does not tell what is huge.
    untold: bool,
    /// Where the next round begins to look, and where the next tick looks up.
    cursor: u32,
    look_up: u32,
    /// Rounds still to be left out, and how many are after the next one that goes badly.
    rest: u32,
    rests: u32,
    refusals: u32,
    stats: CollapseStats,
}

impl Backing {
    pub(crate) const fn new(wanted: HugeBacking) -> Self {
        let stats = CollapseStats { collapsed: 0, no_memory: 0, busy: 0, again: 0, unsupported: 0 };
        Self {
            wanted,
            in_vain: false,
            vain_ticks: 0,
            untold: false,
            guards: 0,
            cursor: 0,
            look_up: 0,
            rest: 0,
            rests: 0,
            refusals: 0,
            stats,
        }
    }
}

impl<F: Floor, C: Clock, P: Fit, S: FrameSource> PageHeap<F, C, P, S> {
    /// From where on hugepages are asked for.
    pub fn backing(&self) -> HugeBacking {
        self.backing.wanted
    }

    /// How collapses went so far.
    pub fn collapse_stats(&self) -> CollapseStats {
        self.backing.stats
    }

    /// Hugepages that are advised against hugepages at the moment, because they were broken up.
    pub fn guarded(&self) -> HugePages {
        HugePages(self.backing.guards)
    }

    /// Whether hugepages are asked for at a place: behind the threshold and where the heap has grown or a collapse asks for them, but
    /// not where one was broken up.
    pub fn asks_for(&self, id: HugePageId) -> bool {
        let t = &self.trackers[id.0 as usize];
        (id >= self.backing.wanted.from || t.asked || t.collapsing) && !t.guarded
    }

    /// Changes from where on hugepages are asked for; what has been granted already is advised anew.
    pub fn set_backing(&mut self, backing: HugeBacking) {
        let old = core::mem::replace(&mut self.backing.wanted, backing);
        if old.from.0 < backing.from.0 {
            self.advise(old.from, HugePageId(backing.from.0.min(self.granted.0)), Advice::Small);
        } else {
            self.advise(backing.from, HugePageId(old.from.0.min(self.granted.0)), Advice::Huge);
        }
        // That went over guarded hugepages too, and over those that are asked for because of a collapse.
        for i in 0..self.granted.0 {
            if core::mem::take(&mut self.trackers[i as usize].asked) && HugePageId(i) < backing.from {
                self.floor.advise(HugePageId(i).range(), Advice::Small);
            }
            if self.trackers[i as usize].collapsing && HugePageId(i) < backing.from {
                self.floor.advise(HugePageId(i).range(), Advice::Huge);
            }
            if self.backing.guards > 0 && self.trackers[i as usize].guarded {
                self.trackers[i as usize].guarded = false;
                self.backing.guards -= 1;
                if HugePageId(i) >= backing.from {
                    self.floor.advise(HugePageId(i).range(), Advice::Huge);
                }
            }
        }
    }

    /// Advises what was granted from `old` on.
    pub(crate) fn advise_granted(&mut self, old: HugePageId) {
        let from = HugePageId(self.backing.wanted.from.0.max(old.0));
        self.advise(from, HugePageId(self.granted.0), Advice::Huge);
    }

    fn advise(&mut self, from: HugePageId, to: HugePageId, advice: Advice) {
        if from < to {
            let heeded = self.floor.advise(from.run(HugePages(to.0 - from.0)), advice);
            if advice == Advice::Huge {
                self.backing.in_vain = !heeded;
            }
        }
    }

    /// Whether a hugepage without memory will have a hugepage of the machine's at its first touch.
    pub(crate) fn will_be_huge(&self, id: HugePageId) -> bool {
        !self.backing.in_vain && self.asks_for(id)
    }

    /// Notes what backing those hugepages will get that were just taken, for a span of `span` hugepages, and have no memory.
    pub(crate) fn expect_backing(&mut self, first: HugePageId, len: HugePages, span: HugePages) {
        if first < self.backing.wanted.from {
            self.ask_in_front(first, len, span >= LONG);
        }
        for i in first.0..first.0 + len.0 {
            if self.trackers[i as usize].backed_pages() == 0 {
                self.trackers[i as usize].intact = self.will_be_huge(HugePageId(i));
            }
        }
    }

    /// What comes to the region's front when the heap is not small any more is to be huge like the rest, and so is what is long;
    /// what comes there when it has become small again is not.
    fn ask_in_front(&mut self, first: HugePageId, len: HugePages, long: bool) {
        let (from, demand) = (self.backing.wanted.from, self.in_demand().0);
        if self.backing.in_vain || from == HugeBacking::NEVER.from {
            return;
        }
        for i in first.0..(first.0 + len.0).min(from.0) {
            let t = &mut self.trackers[i as usize];
            let ask = long || demand > if t.asked { from.0 / 2 } else { from.0 };
            if ask != t.asked && t.backed_pages() == 0 && !t.guarded && !t.collapsing {
                t.asked = ask;
                self.advise(HugePageId(i), HugePageId(i + 1), if ask { Advice::Huge } else { Advice::Small });
            }
        }
    }

    /// Keeps the system from filling a hugepage that is about to be broken up.
    pub(crate) fn guard(&mut self, id: HugePageId) {
        if self.backing.guards < MOST_GUARDS && self.will_be_huge(id) {
            self.floor.advise(id.range(), Advice::Small);
            self.trackers[id.0 as usize].guarded = true;
            self.backing.guards += 1;
        }
    }

    /// Lets the system back hugepages as it was told before.
    pub(crate) fn unguard(&mut self, first: HugePageId, len: HugePages) {
        if self.backing.guards == 0 {
            return;
        }
        for i in first.0..first.0 + len.0 {
            if core::mem::take(&mut self.trackers[i as usize].guarded) {
                self.backing.guards -= 1;
                self.floor.advise(HugePageId(i).range(), Advice::Huge);
            }
        }
    }

    /// Changes what is known of a hugepage's memory, wherever it is.
    fn reback(&mut self, id: HugePageId, change: impl FnOnce(&mut Tracker)) {
        let t = &mut self.trackers[id.0 as usize];
        match t.place {
            Place::Filler => self.filler.update(&mut self.trackers, id, change),
            Place::Region => self.regions.change(t, change),
            Place::Cached => {
                let old = Pages(t.backed_pages());
                change(t);
                self.cached.rebacked(old, Pages(t.backed_pages()));
            }
            Place::Large | Place::Unbacked | Place::Beyond => change(t),
        }
    }

    /// Looks up whether some of the hugepages that should have come as a whole did, and whether the system's mode has changed.
    pub(crate) fn look_up_backing(&mut self) {
        if self.granted.0 == 0 {
            return;
        }
        if self.backing.in_vain {
            self.ask_again();
            return;
        }
        let first = HugePageId(self.backing.look_up % self.granted.0);
        let len = HugePages(LOOKED_UP.min(self.granted.0 - first.0));
        self.backing.look_up = first.0 + len.0;
        let ids = || (first.0..first.0 + len.0).map(HugePageId);
        let whole = ids().filter(|id| self.trackers[id.0 as usize].intact).count();
        if whole == 0 || self.backing.untold {
            return;
        }
        let Some(huge) = self.floor.residency(first.run(len)).huge_bytes else {
            self.backing.untold = true;
            return;
        };
        if huge >= whole * HUGEPAGE_SIZE {
            return;
        }
        for id in ids() {
            let t = &self.trackers[id.0 as usize];
            if !t.intact || t.collapsing {
                continue;
            }
            let seen = self.floor.residency(id.range());
            // What nobody has touched yet may still come as a whole.
            if seen.huge_bytes == Some(0) && seen.resident_bytes > 0 {
                self.reback(id, |t| t.came_in_parts(Bytes(seen.resident_bytes)));
            }
        }
    }

    /// Asks a system that gave no hugepages whether it does now.
    fn ask_again(&mut self) {
        self.backing.vain_ticks += 1;
        let last = HugePageId(self.granted.0 - 1);
        if self.backing.vain_ticks.is_multiple_of(ASK_AGAIN)
            && last >= self.backing.wanted.from
            && !self.trackers[last.0 as usize].guarded
        {
            self.advise(last, HugePageId(self.granted.0), Advice::Huge);
            self.backing.refusals = 0;
        }
    }

    /// One round: looks at some hugepages and collapses a few. Returns how many it collapsed.
    pub(crate) fn collapse_round(&mut self) -> u32 {
        if !self.collapse_is_due() {
            return 0;
        }
        let mut collapsed = 0;
        for _ in 0..ROUND_COLLAPSES {
            let Some(id) = self.begin_collapse() else { break };
            let start = self.clock.now_ns();
            let result = self.floor.collapse(id.range());
            let took_ns = self.clock.now_ns() - start;
            collapsed += u32::from(result.is_ok());
            if !self.end_collapse(id, result, took_ns) {
                break;
            }
        }
        collapsed
    }

    /// Whether this round may collapse hugepages; to be asked once a round. After bad ones some are left out.
    pub fn collapse_is_due(&mut self) -> bool {
        let due = self.backing.rest == 0;
        self.backing.rest = self.backing.rest.saturating_sub(1);
        due
    }

    /// The next hugepage that is worth a collapse. Until [`PageHeap::end_collapse`] none of its pages loses its memory by itself; the
    /// caller may let go of the heap's lock meanwhile.
    pub fn begin_collapse(&mut self) -> Option<HugePageId> {
        let hopeless = self.backing.in_vain || self.backing.refusals >= ENOUGH_REFUSALS;
        if hopeless || self.in_demand().0 <= self.backing.wanted.from.0 {
            return None;
        }
        let mut asked = 0;
        for _ in 0..ROUND_LOOKS.min(self.granted.0) {
            let id = HugePageId(self.backing.cursor % self.granted.0);
            self.backing.cursor = id.0 + 1;
            let t = &self.trackers[id.0 as usize];
            if t.intact || t.collapsing || t.used_pages() < DENSE_PAGES {
                continue;
            }
            asked += 1;
            if asked > ROUND_ASKS {
                break;
            }
            if !self.is_dense_in_truth(id) {
                continue;
            }
            let guarded = core::mem::take(&mut self.trackers[id.0 as usize].guarded);
            if guarded || id < self.backing.wanted.from {
                self.backing.guards -= u32::from(guarded);
                self.floor.advise(id.range(), Advice::Huge);
            }
            self.trackers[id.0 as usize].collapsing = true;
            return Some(id);
        }
        None
    }

    /// Whether a hugepage of which most is in spans has so much memory too: the program may not have touched a large span yet. One
    /// that the system has made whole by itself is known from then on.
    fn is_dense_in_truth(&mut self, id: HugePageId) -> bool {
        let seen = self.floor.residency(id.range());
        if seen.huge_bytes == Some(HUGEPAGE_SIZE) {
            self.reback(id, |t| {
                t.intact = true;
                t.broken = false;
            });
            self.unguard(id, HugePages(1));
            return false;
        }
        // Where the system does not tell, the spans of the filler are taken to be in use.
        match seen.resident_bytes {
            0 => self.trackers[id.0 as usize].place == Place::Filler,
            bytes => bytes >= Pages(DENSE_PAGES).bytes().0,
        }
    }

    /// What came of the collapse of a hugepage, and how long it took; says whether the round may go on. Of one that was not
    /// begun nothing changes.
    pub fn end_collapse(&mut self, id: HugePageId, result: Result<(), CollapseError>, took_ns: u64) -> bool {
        if id.0 >= self.granted.0 || !self.trackers[id.0 as usize].collapsing {
            return false;
        }
        let stats = &mut self.backing.stats;
        let count = match result {
            Ok(()) => &mut stats.collapsed,
            Err(CollapseError::NoMemory) => &mut stats.no_memory,
            Err(CollapseError::Busy) => &mut stats.busy,
            Err(CollapseError::Again) => &mut stats.again,
            Err(CollapseError::Unsupported) => &mut stats.unsupported,
        };
        *count += 1;
        self.backing.refusals = match result {
            Err(CollapseError::Unsupported) => self.backing.refusals + 1,
            _ => 0,
        };
        let well = result.is_ok() && took_ns <= SLOW_NS;
        if !well {
            self.backing.rests = (2 * self.backing.rests).clamp(1, MOST_REST);
        } else if took_ns < SLOW_NS / 2 {
            self.backing.rests /= 2;
        }
        self.backing.rest = self.backing.rests;
        let done = result.is_ok();
        let t = &mut self.trackers[id.0 as usize];
        t.collapsing = false;
        let lost_memory = t.place == Place::Unbacked;
        if lost_memory && done {
            // And has some again.
            self.unbacked.take_at(&mut self.trackers, id, HugePages(1));
            self.trackers[id.0 as usize].intact = true;
            self.put(id, HugePages(1));
        } else if !lost_memory {
            self.reback(id, |t| {
                t.intact |= done;
                t.broken &= !done;
            });
        }
        if self.trackers[id.0 as usize].broken {
            self.guard(id);
        }
        // A small heap's hugepages are asked for one by one: the next first touch is to be on small pages again.
        if id < self.backing.wanted.from && !self.trackers[id.0 as usize].asked {
            self.floor.advise(id.range(), Advice::Small);
        }
        // Its last span came back meanwhile.
        let t = &self.trackers[id.0 as usize];
        if t.place == Place::Filler && t.used_pages() == 0 {
            self.retire(id);
        }
        well
    }
}
