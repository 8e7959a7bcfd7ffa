//! Which spans are worth a hugepage before their first touch.
//!
//! A buffer of 256 KiB with one byte written must not cost a hugepage. Slabs always get hugepages.
//! Of other spans, by length, the first stay on small pages and are checked at later allocations:
//! if densely touched, later ones get hugepages in advance. Some go on as *probes* on small pages,
//! so that a change shows; until one is dense at most [`MOST_UNPROVEN`] hugepages are given.

use craton_base::{HugePageId, HugePages, Pages};

/// Longer ones count as the last.
const LENGTHS: usize = 16;
const PENDING: usize = 4;
/// Dense hugepages in a row that earn trust; doubles when a sparse one follows. Longer spans may be
/// used in part.
const NEEDED: u8 = 2;
const NEEDED_LONG: u8 = 4;
const MOST_NEEDED: u8 = 32;
/// Sparse hugepages that make a length sparse.
const SPARSE: u8 = 3;
/// At a hugepage not touched yet.
const MOST_LOOKS: u8 = 3;
/// Reviews skipped after one without dense hugepages, or with many sparse ones.
const MOST_RESTS: u8 = 15;
const MOST_RESTS_SPARSE: u8 = 63;
/// 1/16 once many probes were dense.
const PROBES: u8 = 8;
const MOST_PROBES: u8 = 16;
/// Between checked places.
const STRIDE: u32 = 7;
/// Hugepages given since a probe was dense.
const MOST_UNPROVEN: u32 = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Hardly touched, or too early.
    Nothing,
    /// At most an eighth was touched.
    Sparse,
    /// At most half was touched: the used part ends here, or few of several spans.
    Part,
    /// Nearly everywhere.
    Dense,
    /// It has another use by now.
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Small,
    /// To be checked: one hugepage, or all of a span on one.
    Probe,
    Huge,
}

#[derive(Clone, Copy)]
struct Pending {
    /// Plus 1; 0: none.
    id: u32,
    looks: u8,
    was_sparse: bool,
}

impl Pending {
    const NONE: Self = Self { id: 0, looks: 0, was_sparse: false };
}

#[derive(Clone, Copy)]
struct Length {
    pending: [Pending; PENDING],
    /// Dense ones, less those that stay untouched or are touched in part.
    dense: u8,
    sparse: u8,
    needed: u8,
    /// Until the next probe, and since one was dense.
    until_probe: u8,
    unproven: u8,
    is_long: bool,
    turn: u8,
    /// To skip, and after the next review that finds nothing dense.
    rest: u8,
    rests: u8,
}

pub struct Trust {
    lengths: [Length; LENGTHS],
}

impl Trust {
    pub const NONE: Self = Self { lengths: [Length::NEW; LENGTHS] };

    fn of(&mut self, pages: Pages) -> &mut Length {
        &mut self.lengths[place(pages)]
    }

    /// Returns the number of dense ones.
    pub fn review(&mut self, pages: Pages, mut see: impl FnMut(HugePageId) -> Seen) -> u32 {
        let mut found = 0;
        let length = self.of(pages);
        // Where hugepages are given, each probe is checked.
        if length.rest > 0 && !length.is_trusted() {
            length.rest -= 1;
            return found;
        }
        let (before, mut looked) = (length.dense, false);
        for pending in length.pending.iter_mut().filter(|pending| pending.id > 0) {
            let seen = match see(HugePageId(pending.id - 1)) {
                Seen::Part if !length.is_long => Seen::Sparse,
                seen => seen,
            };
            pending.looks += 1;
            looked = true;
            if seen == Seen::Sparse && !core::mem::replace(&mut pending.was_sparse, true) {
                continue;
            }
            if seen == Seen::Nothing && pending.looks < MOST_LOOKS {
                continue;
            }
            *pending = Pending::NONE;
            match seen {
                Seen::Dense => {
                    found += 1;
                    length.dense = (length.dense + 1).min(MOST_NEEDED);
                    (length.sparse, length.unproven) = (0, 0);
                }
                Seen::Sparse => {
                    length.sparse = length.sparse.saturating_add(1);
                    if length.dense > 0 {
                        length.dense = 0;
                        length.needed = (2 * length.needed.max(NEEDED)).min(MOST_NEEDED);
                    }
                }
                Seen::Nothing | Seen::Part => length.dense = length.dense.saturating_sub(1),
                Seen::Gone => {}
            }
        }
        if looked {
            let most = if length.sparse > MOST_RESTS { MOST_RESTS_SPARSE } else { MOST_RESTS };
            length.rests = if length.dense > before { 0 } else { (2 * length.rests + 1).min(most) };
            length.rest = length.rests;
        }
        found
    }

    pub fn is_dense(&self, pages: Pages) -> bool {
        self.lengths[place(pages)].is_trusted()
    }

    /// And none dense since.
    pub fn is_sparse(&self, pages: Pages) -> bool {
        self.lengths[place(pages)].sparse >= SPARSE
    }

    pub fn decide(&mut self, pages: Pages, on: HugePages) -> Choice {
        let length = self.of(pages);
        length.is_long = on.0 > 1;
        if length.needed == 0 {
            length.needed = if length.is_long { NEEDED_LONG } else { NEEDED };
        }
        let unproven = u32::from(length.unproven) + on.0;
        if !length.is_trusted() || length.unproven > 0 && unproven > MOST_UNPROVEN {
            return Choice::Small;
        }
        length.unproven = unproven.min(MOST_UNPROVEN) as u8;
        length.until_probe = length.until_probe.saturating_sub(on.0.min(MOST_UNPROVEN) as u8);
        if length.until_probe == 0 {
            length.until_probe = PROBES.saturating_mul(length.dense).min(MOST_PROBES);
            return Choice::Probe;
        }
        Choice::Huge
    }

    /// Two hugepages to check, half the length apart, others each time.
    pub fn places(&mut self, pages: Pages, on: HugePages) -> [u32; 2] {
        let length = self.of(pages);
        length.turn = length.turn.wrapping_add(1);
        let first = u32::from(length.turn).wrapping_mul(STRIDE) % on.0;
        [first, (first + on.0 / 2) % on.0]
    }

    pub fn left_small(&mut self, pages: Pages, id: HugePageId) {
        let length = self.of(pages);
        // None leaves that waits for its second check.
        let Some(last) = length.pending.iter().rposition(|pending| !pending.was_sparse) else { return };
        if length.pending[last].looks > 0 {
            length.dense = length.dense.saturating_sub(1);
        }
        length.pending[..=last].rotate_right(1);
        length.pending[0] = Pending { id: id.0 + 1, ..Pending::NONE };
    }
}

impl Length {
    const NEW: Self = Self {
        pending: [Pending::NONE; PENDING],
        dense: 0,
        sparse: 0,
        needed: 0,
        until_probe: 0,
        unproven: 0,
        is_long: false,
        turn: 0,
        rest: 0,
        rests: 0,
    };

    fn is_trusted(&self) -> bool {
        self.dense >= self.needed.max(NEEDED)
    }
}

fn place(pages: Pages) -> usize {
    (pages.0.max(1).ilog2() as usize).min(LENGTHS - 1)
}

impl Seen {
    pub fn of(resident: usize, given: usize) -> Self {
        match resident {
            0 => Self::Nothing,
            bytes if bytes >= given - given / 8 => Self::Dense,
            bytes if bytes <= given / 8 => Self::Sparse,
            bytes if bytes <= given / 2 => Self::Part,
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
