//! The CPUs' claims: each names at most two, to allocate from and to free into.

use super::Zone;
use crate::geometry::Geometry;
use crate::local::Local;
use crate::lower::Lower;
use crate::media::Media;
use crate::slot::Slot;
use crate::tree::Kind;
use crate::word::{self, Word};
use craton_base::atomic::{self, AtomicU64};

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    #[inline(always)]
    pub(super) fn pop(&self, word: &AtomicU64) -> Option<usize> {
        let half = (word.read() as usize).checked_sub(1)?;
        let slot = self.lower.slots.of(half);
        loop {
            let claim = slot.read();
            if !claim.is_of(half) || claim.mask() == 0 {
                return None;
            }
            let (frame, rest) = claim.pop::<G>();
            if slot.exchange(claim, rest) {
                return Some(frame);
            }
        }
    }

    pub(super) fn get_claimed(&self, local: &Local, kind: Kind) -> Option<usize> {
        let freed = local.puts.read();
        if freed != 0
            && let Some(frame) = self.pop(&local.puts)
        {
            if local.puts.exchange(freed, 0).is_ok() {
                self.name(&local.gets, freed as usize - 1);
            }
            return Some(frame);
        }
        let claimed = self.get_some(local, (kind, 0), |tree, last| self.claim_in(tree, last));
        let (frame, half) = claimed.or_else(|| self.claim_anywhere(local))?;
        self.name(&local.gets, half);
        Some(frame)
    }

    /// Ends the claim that it named.
    pub(super) fn name(&self, word: &AtomicU64, half: usize) {
        let before = word.replace(half as u64 + 1) as usize;
        if before != 0 && before != half + 1 {
            self.end_claim_of(before - 1);
        }
    }

    pub(super) fn forget(&self, word: &AtomicU64) {
        if word.read() != 0
            && let Some(half) = (word.replace(0) as usize).checked_sub(1)
        {
            self.end_claim_of(half);
        }
    }

    fn end_claim_of(&self, half: usize) {
        let slot = self.lower.slots.of(half);
        while slot.read().is_of(half) && !self.end_claim(slot) {}
    }

    pub(super) fn end_claim(&self, slot: &Slot) -> bool {
        let claim = slot.read();
        if claim.is_none() || claim.is_held() || !slot.exchange(claim, claim.held()) {
            return false;
        }
        if claim.mask() == 0 {
            self.lower.unmark(claim);
        } else {
            let before = self.lower.unclaim(claim);
            self.note(Lower::<G, M>::child_of(claim.half()), before, claim.frames());
            self.lower.proof.end();
        }
        slot.release();
        true
    }

    pub(super) fn unblock(&self, half: usize) {
        let slot = self.lower.slots.of(half);
        if !self.end_claim(slot) && slot.read().is_held() {
            atomic::spin();
        }
    }

    pub(crate) fn end_claims(&self) {
        self.lower.slots.iter().filter(|slot| !slot.read().is_none()).for_each(|slot| {
            self.end_claim(slot);
        });
    }

    pub(super) fn has_claimed(&self) -> bool {
        self.lower.slots.iter().map(Slot::read).any(|claim| claim.is_held() || claim.frames() > 0)
    }

    pub(super) fn claim_in(&self, tree: usize, last: Option<usize>) -> Option<((usize, usize), usize)> {
        word::visit();
        self.children(tree, last.unwrap_or(G::CHILDREN), 1).find_map(|child| {
            let (frame, half) = self.claim(child)?;
            Some(((frame, half), child % G::CHILDREN))
        })
    }

    /// Ends a claim whose slot bars all that is free.
    pub(super) fn claim(&self, child: usize) -> Option<(usize, usize)> {
        self.lower.claim(child).or_else(|| {
            let half = self.lower.barred(child)?;
            self.end_claim(self.lower.slots.of(half));
            Some((self.lower.claim_half(half, true)?, half))
        })
    }

    pub(super) fn are_claimed(&self, frame: usize, order: u32) -> bool {
        let halves = frame >> G::CLAIM_ORDER..(frame + (1 << order)) >> G::CLAIM_ORDER;
        self.lower.slots.iter().any(|slot| {
            loop {
                let claim = slot.read();
                if claim.is_none() || !halves.contains(&claim.half()) {
                    return false;
                }
                if !claim.is_held() && claim.mask() != 0 {
                    return true;
                }
                if !self.end_claim(slot) {
                    atomic::spin();
                }
            }
        })
    }
}
