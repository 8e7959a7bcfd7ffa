//! Which hugepages are made whole in the background, and how fast.
//!
//! **What.** A hugepage that is densely used and on small pages all the same is collapsed: the
//! first ones of a heap that grew, those that were broken up and filled again, those for which the
//! system had no hugepage at the time. A round collapses a few.
//!
//! **From.** What followed TEMERAIRE: the paper leaves that to khugepaged.
//!
//! **Failure.** A failed collapse changes nothing. The next rounds come more slowly when it was for
//! want of frames or took long, and not at all where the system does not know it.

use crate::tracker::{Place, Trackers};
use craton_base::{CollapseError, Floor, Geometry, HugePageId, HugePages, Pages, Residency};

/// Hugepages that a round looks at, and those of them that it collapses.
const ROUND_LOOKS: u32 = 512;
pub(crate) const ROUND_COLLAPSES: u32 = 4;
/// Hugepages that the system is asked about in a round.
const ROUND_ASKS: u32 = 16;
/// A collapse that takes longer slows the next rounds down; one that takes less than half of it
/// speeds them up.
const SLOW_NS: u64 = 30_000_000;
/// The most rounds that are left out between two.
const MOST_REST: u32 = 128;
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

/// The result of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Candidate {
    /// Worth a collapse.
    Dense(HugePageId),
    /// The system has made it whole by itself; the search may go on.
    Whole(HugePageId),
}

/// Where the next round begins, and when.
pub(crate) struct Collapse {
    /// Where the next round begins to look.
    cursor: u32,
    /// Rounds still to be left out, and how many are after the next one that goes badly.
    rest: u32,
    rests: u32,
    refusals: u32,
    stats: CollapseStats,
}

/// The looks and questions that a round has left.
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

    /// Whether the system does not know how to collapse.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.refusals >= ENOUGH_REFUSALS
    }

    /// The system's mode may have changed.
    pub(crate) fn hope(&mut self) {
        self.refusals = 0;
    }

    /// Whether this round may collapse hugepages; to be asked once a round.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.rest == 0;
        self.rest = self.rest.saturating_sub(1);
        due
    }

    /// The next hugepage that is densely used and not known to be whole.
    pub(crate) fn next<G: Geometry>(
        &mut self,
        search: &mut Search,
        trackers: &Trackers<G>,
        floor: &impl Floor,
        granted: HugePages,
    ) -> Option<Candidate> {
        // Seven eighths in use are worth a collapse.
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
            // The program may not have touched a large span yet. Where the system does not tell,
            // the spans of the filler are taken to be in use.
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

    /// Counts a collapse and how long it took; returns whether the round may go on.
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
