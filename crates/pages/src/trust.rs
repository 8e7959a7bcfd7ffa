//! Which spans are worth a hugepage before their first touch.
//!
//! **What.** Memory that is handed out may never be touched: a buffer of 256 KiB of which one byte
//! is written must not cost a hugepage. Spans of slabs fill up and always get hugepages. Of other
//! spans, by length, the first ones stay on small pages. Those are looked at when later ones
//! are taken, in places that change: if the program has touched them densely, later ones get
//! hugepages in advance, ten times cheaper than a collapse. Some go on as *probes* on small pages,
//! so that a change shows; until one is dense at most [`MOST_UNPROVEN`] hugepages are given.
//!
//! **State.** For each power of two of pages a few hugepages that are still to be looked at.

use craton_base::{HugePageId, HugePages, Pages};

/// Lengths in powers of two of pages; longer ones count as the last.
const LENGTHS: usize = 16;
/// Hugepages of a length that are still to be looked at.
const PENDING: usize = 4;
/// Dense hugepages in a row that earn trust: for spans on one, and for longer ones, which may be
/// used in part. Doubles when a sparse one follows, up to [`MOST_NEEDED`].
const NEEDED: u8 = 2;
const NEEDED_LONG: u8 = 4;
const MOST_NEEDED: u8 = 32;
/// Hugepages seen sparse after which a length counts as sparse.
const SPARSE: u8 = 3;
/// Looks at a hugepage that is not touched yet.
const MOST_LOOKS: u8 = 3;
/// Most reviews skipped between two of a length that the program does not touch densely, and of one
/// of which many hugepages were seen sparse.
const MOST_RESTS: u8 = 15;
const MOST_RESTS_SPARSE: u8 = 63;
/// One hugepage in 8 is a probe, and one in 16 once many probes were dense.
const PROBES: u8 = 8;
const MOST_PROBES: u8 = 16;
/// Hugepages between places looked at, one after the other.
const STRIDE: u32 = 7;
/// Most hugepages given since a probe was dense.
const MOST_UNPROVEN: u32 = 32;

/// The density of a hugepage on small pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Hardly touched, or too early to tell.
    Nothing,
    /// Touched at most by an eighth.
    Sparse,
    /// Touched at most by half: in longer memory the end of the used part, else few of several
    /// spans.
    Part,
    /// Touched nearly everywhere.
    Dense,
    /// It has another use by now.
    Gone,
}

/// The pages for new memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// Small pages, since nothing dense was seen.
    Small,
    /// Small pages where it will be looked at: a hugepage of it, or all of a span on one.
    Probe,
    /// Hugepages.
    Huge,
}

#[derive(Clone, Copy)]
struct Pending {
    /// Its number plus 1; 0 for none.
    id: u32,
    looks: u8,
    /// Sparse at the look before.
    was_sparse: bool,
}

impl Pending {
    const NONE: Self = Self { id: 0, looks: 0, was_sparse: false };
}

#[derive(Clone, Copy)]
struct Length {
    pending: [Pending; PENDING],
    /// Dense ones seen, less those that stay untouched or are touched in part.
    dense: u8,
    /// Sparse ones seen since.
    sparse: u8,
    needed: u8,
    /// Hugepages until the next probe, and given since one was dense.
    until_probe: u8,
    unproven: u8,
    /// On more than one hugepage.
    is_long: bool,
    /// Changes the places that are looked at.
    turn: u8,
    /// Reviews to skip, and to skip after the next one that finds nothing dense.
    rest: u8,
    rests: u8,
}

/// The trust in each length.
pub struct Trust {
    lengths: [Length; LENGTHS],
}

impl Trust {
    /// None yet; all zeros.
    pub const NONE: Self = Self { lengths: [Length::NEW; LENGTHS] };

    fn of(&mut self, pages: Pages) -> &mut Length {
        &mut self.lengths[place(pages)]
    }

    /// Looks at the pending hugepages of a length; the number of dense ones.
    pub fn review(&mut self, pages: Pages, mut see: impl FnMut(HugePageId) -> Seen) -> u32 {
        let mut found = 0;
        let length = self.of(pages);
        // Where hugepages are given each probe is looked at.
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
            // It may be filling up: a second look tells.
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

    /// Whether memory of a length is expected to fill.
    pub fn is_dense(&self, pages: Pages) -> bool {
        self.lengths[place(pages)].is_trusted()
    }

    /// Whether spans of a length were seen to be sparse, and none dense since.
    pub fn is_sparse(&self, pages: Pages) -> bool {
        self.lengths[place(pages)].sparse >= SPARSE
    }

    /// Chooses for the next memory of a length, on `on` hugepages; occasionally a probe.
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

    /// The places to look at of memory on `on` hugepages: others each time, the second half the
    /// length behind the first.
    pub fn places(&mut self, pages: Pages, on: HugePages) -> [u32; 2] {
        let length = self.of(pages);
        length.turn = length.turn.wrapping_add(1);
        let first = u32::from(length.turn).wrapping_mul(STRIDE) % on.0;
        [first, (first + on.0 / 2) % on.0]
    }

    /// Notes a hugepage that was left on small pages for a span of that length.
    pub fn left_small(&mut self, pages: Pages, id: HugePageId) {
        let length = self.of(pages);
        // The oldest leaves, but none that waits for its second look.
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

/// A length's place in the table.
fn place(pages: Pages) -> usize {
    (pages.0.max(1).ilog2() as usize).min(LENGTHS - 1)
}

impl Seen {
    /// By the bytes that are resident of those handed out.
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
