//! The invariants, checked while nothing is under way.

use crate::claim::Claim;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::media::Media;
use crate::word::Word;
use crate::zone::Zone;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    pub invariant: &'static str,
    pub at: usize,
}

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    pub fn check(&self) -> Result<(), Broken> {
        let fail = |invariant, at, broken: bool| if broken { Err(Broken { invariant, at }) } else { Ok(()) };
        for child in 0..self.lower.huge_frames() {
            let entry = self.lower.child(child);
            let rows = |quarter: usize| quarter * ROWS / QUARTERS..(quarter + 1) * ROWS / QUARTERS;
            let bits = |row: usize| self.lower.rows[child * ROWS + row].read();
            let open = (0..QUARTERS).filter(|quarter| !entry.has_quarter(*quarter)).flat_map(rows);
            // Frames of claimed halves count as allocated.
            let frames = |row: usize| (row << G::ROW_ORDER..(row + 1) << G::ROW_ORDER).map(|at| child * G::HUGE + at);
            let free = open.flat_map(frames).filter(|frame| !self.lower.is_allocated(*frame)).count();
            fail("F1", child, entry.free() != free || entry.is_pending())?;
            let whole = (0..QUARTERS).filter(|quarter| entry.has_quarter(*quarter)).flat_map(rows);
            fail("F2", child, whole.map(bits).any(|bits| bits != 0) && !self.offline.has(child))?;
        }
        for frame in self.frames()..self.lower.huge_frames() * G::HUGE {
            fail("F3", frame, !self.lower.is_allocated(frame))?;
        }
        for tree in 0..self.trees.len() {
            self.trees.check(tree, &self.lower).map_err(|invariant| Broken { invariant, at: tree })?;
        }
        for slot in self.lower.slots.iter() {
            let claim = slot.read();
            if !claim.is_none() {
                let (half, of) = (claim.half(), Claim::bits_of::<G>(claim.half()));
                let bits = self.lower.rows[half << G::CLAIM_ORDER >> G::ROW_ORDER].read();
                let is_marked = bits & of == Claim::mark_of::<G>(half);
                let is_there = core::ptr::eq(self.lower.slots.of(half), slot);
                fail("F6", half << G::CLAIM_ORDER, !is_marked || !is_there || claim.is_held())?;
            }
        }
        let is_free = |frame: usize| {
            let (half, bit) = Claim::of::<G>(frame);
            let claim = self.lower.slots.is_on().then(|| self.lower.slots.of(half).read());
            let is_claimed = claim.is_some_and(|claim| claim.is_of(half) && claim.mask() & bit != 0);
            is_claimed || !self.lower.is_allocated(frame)
        };
        if let Some(order) = (0..=G::MAX_ORDER).find(|order| self.lower.proof.refuses(*order)) {
            for first in (0..self.frames() >> order).map(|block| block << order) {
                fail("F8", first, (first..first + (1 << order)).all(is_free))?;
            }
        }
        let roots = || self.locals.iter().filter_map(|local| local.root().tree());
        let reserved = (0..self.trees.len()).filter(|tree| self.trees.entry(*tree).is_reserved()).count();
        fail("F7", 0, roots().count() != reserved || roots().any(|tree| !self.trees.entry(tree).is_reserved()))
    }
}
