//! Which hugepages are collapsed in the background, and how fast.
//!
//! **What.** Densely used hugepages on small pages: the first of a heap that grew, refilled broken
//! ones, those for which the system had no hugepage. The paper leaves that to khugepaged.
//! **Cost.** Processor time, [`ROUND_NS`] a round of a second, [`IDLE_NS`] on an idle processor;
//! the next rounds pay an excess.
//! **Failure.** Rounds back off for want of frames. Enough busy hugepages (shared with a fork's
//! child) end the round.

use crate::tracker::{Place, Trackers};
use crate::trust::Seen;
use craton_base::{Ask, CollapseError, Floor, Geometry, HugePageId, HugePages, Residency};

const ROUND_LOOKS: u32 = 512;
const ROUND_ASKS: u32 = 16;
/// 2 % of a processor; 10 % of an idle one.
const ROUND_NS: u64 = 20_000_000;
const IDLE_NS: u64 = 100_000_000;
/// Rounds between two.
const MOST_REST: u32 = 32;
const ENOUGH_BUSY: u32 = 8;
/// Without a success between: they end all collapses.
const ENOUGH_REFUSALS: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollapseStats {
    pub collapsed: u64,
    pub no_memory: u64,
    pub busy: u64,
    pub again: u64,
    pub unsupported: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Took {
    pub processor_ns: u64,
    pub wall_ns: u64,
}

impl Took {
    pub const fn busy(ns: u64) -> Self {
        Self { processor_ns: ns, wall_ns: ns }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Candidate {
    Dense(HugePageId),
    Whole(HugePageId),
}

pub(crate) struct Collapse {
    cursor: u32,
    /// Rounds to skip, and after the next bad one.
    rest: u32,
    rests: u32,
    refusals: u32,
    round: Took,
    /// Beyond past rounds' budgets.
    spent_ns: u64,
    busy: u32,
    stats: CollapseStats,
}

pub(crate) struct Search {
    looks: u32,
    asks: u32,
}

impl Search {
    pub(crate) fn new(granted: HugePages) -> Self {
        Self { looks: ROUND_LOOKS.min(granted.0), asks: ROUND_ASKS }
    }
}

impl Collapse {
    pub(crate) const fn new() -> Self {
        let stats = CollapseStats { collapsed: 0, no_memory: 0, busy: 0, again: 0, unsupported: 0 };
        Self {
            cursor: 0,
            rest: 0,
            rests: 0,
            refusals: 0,
            round: Took { processor_ns: 0, wall_ns: 0 },
            spent_ns: 0,
            busy: 0,
            stats,
        }
    }

    pub(crate) fn stats(&self) -> CollapseStats {
        self.stats
    }

    pub(crate) fn is_hopeless(&self) -> bool {
        self.refusals >= ENOUGH_REFUSALS
    }

    /// The system's mode may have changed.
    pub(crate) fn hope(&mut self) {
        self.refusals = 0;
    }

    /// Ask once a round.
    pub(crate) fn is_due(&mut self) -> bool {
        self.spent_ns = self.spent_ns.saturating_sub(self.budget_ns());
        let due = self.rest == 0 && self.spent_ns < self.budget_ns();
        self.rest = self.rest.saturating_sub(1);
        if due {
            (self.round, self.busy) = (Took::default(), 0);
        }
        due
    }

    /// By whether the last collapses waited for a processor.
    fn budget_ns(&self) -> u64 {
        let Took { processor_ns, wall_ns } = self.round;
        if wall_ns <= 2 * processor_ns { IDLE_NS } else { ROUND_NS }
    }

    pub(crate) fn next<G: Geometry>(
        &mut self,
        search: &mut Search,
        trackers: &Trackers<G>,
        floor: &impl Floor,
        granted: HugePages,
    ) -> Option<Candidate> {
        let dense = G::PAGES - G::PAGES / 8;
        while search.looks > 0 {
            search.looks -= 1;
            let id = HugePageId(self.cursor % granted.0);
            self.cursor = id.0 + 1;
            let t = &trackers[id.0 as usize];
            if t.intact || t.collapsing || t.used_pages() < dense {
                continue;
            }
            search.asks = search.asks.checked_sub(1)?;
            let Residency { resident_bytes, huge_bytes } = floor.residency(G::range(id), Ask::Both);
            if huge_bytes == Some(G::pages(HugePages(1)).bytes().0) {
                return Some(Candidate::Whole(id));
            }
            // Without residency only spans of many small objects count as touched.
            let is_dense = match resident_bytes {
                0 => t.place == Place::Filler && t.dense,
                bytes => Seen::of(bytes, G::pages(HugePages(1)).bytes().0) == Seen::Dense,
            };
            if is_dense {
                return Some(Candidate::Dense(id));
            }
        }
        None
    }

    /// Whether the round may go on.
    pub(crate) fn record(&mut self, result: Result<(), CollapseError>, took: Took) -> bool {
        let count = match result {
            Ok(()) => &mut self.stats.collapsed,
            Err(CollapseError::NoMemory) => &mut self.stats.no_memory,
            Err(CollapseError::Busy) => &mut self.stats.busy,
            Err(CollapseError::Again) => &mut self.stats.again,
            Err(CollapseError::Unsupported) => &mut self.stats.unsupported,
        };
        *count += 1;
        self.refusals = if result == Err(CollapseError::Unsupported) { self.refusals + 1 } else { 0 };
        self.round.processor_ns += took.processor_ns;
        self.round.wall_ns += took.wall_ns;
        self.spent_ns += took.processor_ns;
        let well = match result {
            Ok(()) => {
                self.rests /= 2;
                true
            }
            Err(CollapseError::Busy | CollapseError::Again) => {
                self.busy += 1;
                self.rest = u32::from(self.busy == ENOUGH_BUSY);
                self.busy < ENOUGH_BUSY
            }
            Err(CollapseError::NoMemory | CollapseError::Unsupported) => {
                self.rests = (2 * self.rests).clamp(1, MOST_REST);
                self.rest = self.rests;
                false
            }
        };
        well && self.spent_ns < self.budget_ns()
    }
}

#[cfg(test)]
mod tests;
