//! Which hugepages are collapsed in the background, and how fast.
//!
//! **What.** A densely used hugepage on small pages is collapsed: the first ones of a heap that
//! grew, broken ones that filled again, those for which the system had no hugepage. A round
//! collapses a few.
//!
//! **From.** Work after TEMERAIRE; the paper leaves that to khugepaged.
//!
//! **Failure.** A failed collapse changes nothing. Rounds back off for want of frames or slowness,
//! and stop where the system does not support it.

use crate::tracker::{Place, Trackers};
use craton_base::{CollapseError, Floor, Geometry, HugePageId, HugePages, Pages, Residency};

/// Hugepages examined and collapsed in a round.
const ROUND_LOOKS: u32 = 512;
pub(crate) const ROUND_COLLAPSES: u32 = 4;
/// Residency queries in a round.
const ROUND_ASKS: u32 = 16;
/// A slower collapse slows the next rounds down; one below half of it speeds them up.
const SLOW_NS: u64 = 30_000_000;
/// Most rounds skipped between two.
const MOST_REST: u32 = 128;
/// Refusals as unsupported, without a success between them, that end all collapses.
const ENOUGH_REFUSALS: u32 = 8;

/// Collapse counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollapseStats {
    /// Hugepages collapsed.
    pub collapsed: u64,
    /// Refused as [`CollapseError::NoMemory`]: no frames.
    pub no_memory: u64,
    /// Refused as [`CollapseError::Busy`].
    pub busy: u64,
    /// Refused as [`CollapseError::Again`].
    pub again: u64,
    /// Refused as [`CollapseError::Unsupported`].
    pub unsupported: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Candidate {
    Dense(HugePageId),
    /// The system has collapsed it; the search may go on.
    Whole(HugePageId),
}

pub(crate) struct Collapse {
    /// Where the next round begins.
    cursor: u32,
    /// Rounds still to skip, and rounds to skip after the next bad one.
    rest: u32,
    rests: u32,
    refusals: u32,
    stats: CollapseStats,
}

/// A round's remaining steps and queries.
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
        Self { cursor: 0, rest: 0, rests: 0, refusals: 0, stats }
    }

    pub(crate) fn stats(&self) -> CollapseStats {
        self.stats
    }

    /// Whether the system does not support collapses.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.refusals >= ENOUGH_REFUSALS
    }

    /// Retries: the system's mode may have changed.
    pub(crate) fn hope(&mut self) {
        self.refusals = 0;
    }

    /// Whether this round may collapse; ask once a round.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.rest == 0;
        self.rest = self.rest.saturating_sub(1);
        due
    }

    /// The next densely used hugepage not known to be whole.
    pub(crate) fn next<G: Geometry>(
        &mut self,
        search: &mut Search,
        trackers: &Trackers<G>,
        floor: &impl Floor,
        granted: HugePages,
    ) -> Option<Candidate> {
        // Seven eighths in use justify a collapse.
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
            let Residency { resident_bytes, huge_bytes } = floor.residency(G::range(id));
            if huge_bytes == Some(G::pages(HugePages(1)).bytes().0) {
                return Some(Candidate::Whole(id));
            }
            // A large span may be untouched. Without residency only the filler counts as used.
            let is_dense = match resident_bytes {
                0 => t.place == Place::Filler,
                bytes => bytes >= Pages(dense).bytes().0,
            };
            if is_dense {
                return Some(Candidate::Dense(id));
            }
        }
        None
    }

    /// Counts a collapse and its duration; whether the round may go on.
    pub(crate) fn record(&mut self, result: Result<(), CollapseError>, took_ns: u64) -> bool {
        let count = match result {
            Ok(()) => &mut self.stats.collapsed,
            Err(CollapseError::NoMemory) => &mut self.stats.no_memory,
            Err(CollapseError::Busy) => &mut self.stats.busy,
            Err(CollapseError::Again) => &mut self.stats.again,
            Err(CollapseError::Unsupported) => &mut self.stats.unsupported,
        };
        *count += 1;
        self.refusals = if result == Err(CollapseError::Unsupported) { self.refusals + 1 } else { 0 };
        let well = result.is_ok() && took_ns <= SLOW_NS;
        if !well {
            self.rests = (2 * self.rests).clamp(1, MOST_REST);
        } else if took_ns < SLOW_NS / 2 {
            self.rests /= 2;
        }
        self.rest = self.rests;
        well
    }
}

#[cfg(test)]
mod tests;
