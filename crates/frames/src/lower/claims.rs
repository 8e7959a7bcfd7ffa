//! Claims, and frees next to them.
//!
//! **Invariants.** *F6* While a claim is open, its half's bits in the row are a mark: by the word
//! its frames are free, the half's others allocated. No block of several frames fits into the mark,
//! so only requests for single frames, and refused frees, see it.
//! **Threads.** Bits that happen to be the mark are a claim only if the half's slot names it. A
//! free there holds the slot, from before it reads the bits: no claim opens until it has changed
//! the row. Of two frees of a frame, by claim or row, the second sees the first.

use super::{Lower, Refused};
use crate::child::Child;
use crate::claim::Claim;
use crate::geometry::{Geometry, ROWS};
use crate::media::Media;
use crate::slot::Slot;
use crate::word::Word;

impl<G: Geometry, M: Media> Lower<'_, G, M> {
    const HALVES_OF_ROW: usize = 1 << (G::ROW_ORDER - G::CLAIM_ORDER);

    pub(crate) fn child_of(half: usize) -> usize {
        half >> (G::HUGE_ORDER - G::CLAIM_ORDER)
    }

    #[inline(never)]
    pub(super) fn clear_marked(&self, row: usize, mask: u64) -> Result<(), Refused> {
        let (word, first) = (&self.rows[row], row * Self::HALVES_OF_ROW);
        let mut held: [Option<&Slot>; 2] = [None; 2];
        let mut cleared = Ok(());
        for (at, held) in held.iter_mut().enumerate().take(Self::HALVES_OF_ROW) {
            match self.hold_marked(first + at, mask) {
                Ok(slot) => *held = slot,
                Err(refused) => cleared = Err(refused),
            }
        }
        while cleared.is_ok() {
            let bits = word.read();
            let is_marked = |at: &usize| Claim::is_marked::<G>(bits, mask & Claim::bits_of::<G>(first + at));
            if let Some(at) = (0..Self::HALVES_OF_ROW).find(|at| held[*at].is_none() && is_marked(at)) {
                cleared = Err(Refused::Blocked(first + at));
            } else if bits & mask != mask {
                cleared = Err(Refused::Free);
            } else if word.exchange(bits, bits & !mask).is_ok() {
                self.cleared(word, row << G::ROW_ORDER);
                break;
            }
        }
        held.into_iter().flatten().for_each(Slot::release);
        cleared
    }

    /// If the half looks claimed, without a claim.
    fn hold_marked(&self, half: usize, mask: u64) -> Result<Option<&Slot>, Refused> {
        let (of, slot) = (Claim::bits_of::<G>(half), self.slots.of(half));
        if mask & of == 0 {
            return Ok(None);
        }
        let part = ((mask & of) >> Claim::at::<G>(half)) as u32;
        let claim = slot.read();
        // After the slot: a claim in between would have changed the word.
        let bits = self.rows[half / Self::HALVES_OF_ROW].read();
        if bits & of != Claim::mark_of::<G>(half) {
            return if bits & mask & of == mask & of { Ok(None) } else { Err(Refused::Free) };
        }
        if claim.is_of(half) && claim.mask() & part != 0 {
            return Err(Refused::Free);
        }
        let is_held = claim.is_none() && slot.exchange(claim, Claim::new(half, part).held());
        if is_held { Ok(Some(slot)) } else { Err(Refused::Blocked(half)) }
    }

    pub(crate) fn open_with(&self, half: usize, bit: u32) -> bool {
        let (of, slot) = (Claim::bits_of::<G>(half), self.slots.of(half));
        let word = &self.rows[half / Self::HALVES_OF_ROW];
        let claim = slot.read();
        if !claim.is_none() || word.read() & of != of || !slot.exchange(claim, Claim::new(half, bit).held()) {
            return false;
        }
        loop {
            let bits = word.read();
            if bits & of != of {
                slot.release();
                return false;
            }
            if word.exchange(bits, bits & !of | Claim::mark_of::<G>(half)).is_ok() {
                self.media.changed(word);
                slot.publish(Claim::new(half, bit));
                return true;
            }
        }
    }

    pub(super) fn is_claimed(&self, frame: usize) -> bool {
        let half = frame >> G::CLAIM_ORDER;
        let bits = self.rows[frame >> G::ROW_ORDER].read();
        self.slots.is_on()
            && Claim::is_marked::<G>(bits, Claim::bits_of::<G>(half))
            && self.slots.of(half).read().concerns(half)
    }

    pub(super) fn take_bit(&self, frame: usize) -> Option<()> {
        let half = frame >> G::CLAIM_ORDER;
        let slot = self.slots.of(half);
        let claim = slot.read();
        if !claim.is_none() || !slot.exchange(claim, Claim::new(half, 0).held()) {
            return None;
        }
        let taken = self.take_mask(frame, 0, true);
        slot.release();
        taken
    }

    /// Prefers the first half with its quarter free, then the freest; returns a frame, and the
    /// half.
    pub(crate) fn claim(&self, child: usize) -> Option<(usize, usize)> {
        let size = 1u32 << G::CLAIM_ORDER;
        let entry = self.child(child);
        if entry.free() == 0 {
            return None;
        }
        let rows = &self.rows[child * ROWS..][..ROWS];
        let mut best: Option<(usize, u32)> = None;
        'rows: for row in Self::open_rows(entry) {
            let free = !rows[row].read() & G::FULL_ROW;
            if free == 0 {
                continue;
            }
            let first = (child * ROWS + row) * Self::HALVES_OF_ROW;
            for half in first..first + Self::HALVES_OF_ROW {
                let count = (free & Claim::bits_of::<G>(half)).count_ones();
                if count > best.map_or(0, |(_, most)| most) && self.may_claim(half) {
                    best = Some((half, count));
                    if count >= size / 4 {
                        break 'rows;
                    }
                }
            }
        }
        let half = best?.0;
        Some((self.claim_half(half, true)?, half))
    }

    fn may_claim(&self, half: usize) -> bool {
        let claim = self.slots.of(half).read();
        claim.is_none() || claim.is_empty() && !claim.is_of(half)
    }

    /// A half with free frames that another half's claim bars, since they share a slot.
    #[cold]
    pub(crate) fn barred(&self, child: usize) -> Option<usize> {
        let entry = self.child(child);
        let halves_of = |row: usize| {
            let first = (child * ROWS + row) * Self::HALVES_OF_ROW;
            first..first + Self::HALVES_OF_ROW
        };
        let is_barred = |half: &usize| {
            let claim = self.slots.of(*half).read();
            let of = Claim::bits_of::<G>(*half);
            let is_full = self.rows[half / Self::HALVES_OF_ROW].read() & of == of;
            !claim.is_none() && !claim.is_held() && !claim.is_of(*half) && !is_full
        };
        if entry.free() == 0 { None } else { Self::open_rows(entry).flat_map(halves_of).find(is_barred) }
    }

    /// `None` also if the slot has a claim with frames.
    pub(crate) fn claim_half(&self, half: usize, hands_out: bool) -> Option<usize> {
        let slot = self.slots.of(half);
        let (old, new) = (slot.read(), Claim::new(half, 0).held());
        if old.is_empty() {
            if !slot.exchange(old, old.held()) {
                return None;
            }
            self.unmark(old);
            slot.publish(new);
        } else if !old.is_none() || !slot.exchange(old, new) {
            return None;
        }
        let Some(mask) = self.take_half(half) else {
            slot.release();
            return None;
        };
        let claim = Claim::new(half, mask);
        let (frame, rest) = claim.pop::<G>();
        slot.publish(if hands_out { rest } else { claim });
        Some(frame)
    }

    fn take_half(&self, half: usize) -> Option<u32> {
        let (child, row) = (Self::child_of(half), half / Self::HALVES_OF_ROW);
        let (of, word) = (Claim::bits_of::<G>(half), &self.rows[row]);
        let mut counted = 0;
        let taken = loop {
            let bits = word.read();
            let (free, entry) = (!bits & of, self.child(child));
            let wanted = free.count_ones() as usize;
            if free == 0 || entry.has_quarter(row % ROWS / super::QUARTER_ROWS) {
                break 0;
            }
            if wanted > counted {
                if self.update(child, |entry| entry.take(wanted - counted)).is_err() {
                    break 0;
                }
                counted = wanted;
            }
            if word.exchange(bits, bits & !of | Claim::mark_of::<G>(half)).is_ok() {
                self.media.changed(word);
                if self.holds(child, row % ROWS) {
                    break free;
                }
                self.unmark(Claim::new(half, (free >> Claim::at::<G>(half)) as u32));
                break 0;
            }
        };
        let surplus = counted - taken.count_ones() as usize;
        if surplus > 0 {
            self.undo(child, surplus);
        }
        (taken != 0).then_some((taken >> Claim::at::<G>(half)) as u32)
    }

    pub(crate) fn unmark(&self, claim: Claim) {
        let (half, at) = (claim.half(), Claim::at::<G>(claim.half()));
        let word = &self.rows[half / Self::HALVES_OF_ROW];
        let bits = Claim::bits_of::<G>(half) & !(u64::from(claim.mask()) << at);
        // No other request changes the half's bits.
        word.add(bits.wrapping_sub(Claim::mark_of::<G>(half)));
        self.media.changed(word);
    }

    pub(crate) fn unclaim(&self, claim: Claim) -> Child {
        self.unmark(claim);
        self.give(Self::child_of(claim.half()), claim.frames())
    }
}
