//! Frees of frames (LLFree §3.2.2, reserve-on-free; claims in place of counters are ours).
//!
//! A single frame joins the CPU's claim of its half of a row, or is freed alone; the second of two
//! consecutive frees in a half begins a claim. All else goes to the lower level at once.

use super::{RESERVE_ON_FREE, Zone};
use crate::claim::Claim;
use crate::config::Request;
use crate::error::Error;
use crate::geometry::Geometry;
use crate::local::{Local, Root};
use crate::lower::Lower;
use crate::media::Media;
use crate::tree::Trees;
use crate::word::Word;
use craton_base::atomic::AtomicU64;

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// Frees 2^`order` frames, which may be a part of what was allocated at once, or several such.
    #[inline]
    pub fn put(&self, frame: usize, request: Request) -> Result<(), Error> {
        let local = self.local(request.processor, request.kind)?;
        if request.order > 0 {
            return if request.order >= G::HUGE_ORDER {
                self.put_huge(local, frame, request.order)
            } else {
                self.put_group(frame, request.order)
            };
        }
        if frame >= self.frames() {
            return Err(Error::OutOfRange { frame, frames: self.frames() });
        }
        if self.config.claims {
            let (half, bit) = Claim::of::<G>(frame);
            let (gets, puts) = (Claim(local.gets.read()), Claim(local.puts.read()));
            let (in_gets, in_puts) = (gets.among(half), puts.among(half));
            if in_gets | in_puts != 0 {
                if (in_gets | in_puts) & bit == 0 && self.lower.has_bit(frame) {
                    let (word, claim) = if in_puts != 0 { (&local.puts, puts) } else { (&local.gets, gets) };
                    if word.exchange(claim.0, claim.with(bit).0).is_ok() {
                        return Ok(());
                    }
                }
                return self.put_among(local, frame, half, bit);
            }
            if gets.is_of(half) || puts.is_of(half) {
                return self.put_back(local, frame, half, bit);
            }
        }
        self.put_alone(local, frame)
    }

    /// Frees a frame of an exhausted claim: claims it again, unless the half was taken meanwhile.
    #[inline(never)]
    fn put_back(&self, local: &Local, frame: usize, half: usize, bit: u32) -> Result<(), Error> {
        let child = frame / G::HUGE;
        let is_ours = self.lower.child(child).is_claimed()
            && self.lower.child(child).quarters() == 0
            && self.is_unclaimed(child, local)
            && self.lower.has_bit(frame);
        let old = Claim::new(half, 0);
        if is_ours && [&local.gets, &local.puts].iter().any(|word| word.exchange(old.0, old.with(bit).0).is_ok()) {
            self.lower.mark_claimed(child);
            return Ok(());
        }
        self.put_alone(local, frame)
    }

    /// Frees a frame of a half that the CPU has claimed: already free, or the claim has changed.
    #[cold]
    #[inline(never)]
    fn put_among(&self, local: &Local, frame: usize, half: usize, bit: u32) -> Result<(), Error> {
        let is_claimed = |word: &AtomicU64| Claim(word.read()).among(half) & bit != 0;
        if [&local.gets, &local.puts].into_iter().any(is_claimed) {
            return Err(Error::NotAllocated { frame, order: 0 });
        }
        self.put_group(frame, 0)
    }

    /// Frees a frame of a half without the CPU's claim.
    #[inline(never)]
    fn put_alone(&self, local: &Local, frame: usize) -> Result<(), Error> {
        if self.config.claims {
            let (is_again, run) = local.note_put(frame >> G::CLAIM_ORDER, G::TREE >> G::CLAIM_ORDER);
            if is_again || run == RESERVE_ON_FREE {
                return self.put_again(local, frame, is_again);
            }
        }
        self.put_plain(frame)
    }

    /// Frees a frame after neighbours in its half or tree.
    #[inline(never)]
    fn put_again(&self, local: &Local, frame: usize, is_same_half: bool) -> Result<(), Error> {
        let (half, bit) = Claim::of::<G>(frame);
        if is_same_half && self.adopt(local, frame, half, bit)? {
            return Ok(());
        }
        if !is_same_half {
            self.prefer(local, frame / G::TREE);
        }
        self.put_plain(frame)
    }

    /// Frees a frame. Rare cases are tail calls, which saves registers.
    #[inline]
    fn put_plain(&self, frame: usize) -> Result<(), Error> {
        let child = frame / G::HUGE;
        if !self.lower.child(child).is_plain() {
            return self.put_group(frame, 0);
        }
        let Some(before) = self.lower.put_bit(frame) else { return Err(Error::NotAllocated { frame, order: 0 }) };
        if Self::is_of_note(before, 1) {
            return self.note_put(child, before.free() + 1);
        }
        Ok(())
    }

    #[inline(never)]
    fn note_put(&self, child: usize, free: usize) -> Result<(), Error> {
        self.note_slowly(child, free == G::HUGE);
        Ok(())
    }

    /// Frees one or two huge frames. Checks the tree's class at times, when neighbours are free.
    #[inline(never)]
    fn put_huge(&self, local: &Local, frame: usize, order: u32) -> Result<(), Error> {
        self.check_place(frame, order)?;
        let child = frame / G::HUGE;
        let is_put = match order == G::HUGE_ORDER {
            true => !self.offline.has(child) && self.lower.put_huge(child),
            false => !self.offline.has(child) && !self.offline.has(child + 1) && self.lower.put_two(child),
        };
        if !is_put {
            return self.put_group(frame, order);
        }
        let tree = child / G::CHILDREN;
        let is_known = self.trees.huge().has(tree) && !self.trees.entry(tree).is_full();
        if !is_known || local.is_look_due() && self.lower.are_four_empty(child) {
            self.note_slowly(child, !is_known);
        }
        Ok(())
    }

    /// Begins a claim with a freed frame. Not in another CPU's tree: it may claim the same half.
    #[inline(never)]
    fn adopt(&self, local: &Local, frame: usize, half: usize, bit: u32) -> Result<bool, Error> {
        let (child, tree) = (frame / G::HUGE, frame / G::TREE);
        let is_ours = || local.root().tree() == Some(tree) || !self.trees.entry(tree).is_reserved();
        self.check_unclaimed(frame, 0)?;
        if !is_ours()
            || !self.lower.has_bit(frame)
            || self.lower.child(child).is_claimed() && !self.is_unclaimed(child, local)
        {
            return Ok(false);
        }
        self.lower.mark_claimed(child);
        let new = Claim::new(half, bit);
        let is_adopted = local.moving(|| {
            let old = Claim(local.puts.read());
            let is_ours = local.puts.exchange(old.0, new.0).is_ok();
            if is_ours {
                self.unclaim(old);
            }
            is_ours
        });
        if !is_adopted {
            return Ok(false);
        }
        self.lower.mark_claimed(child);
        // A CPU that reserved the tree meanwhile may not have seen the claim.
        if !is_ours() {
            local.moving(|| self.unclaim(Local::take_claim(&local.puts)));
        }
        Ok(true)
    }

    /// Frees frames of a huge frame with claims or quarters allocated as wholes, or of several.
    #[inline(never)]
    pub(crate) fn put_group(&self, frame: usize, order: u32) -> Result<(), Error> {
        self.check_place(frame, order)?;
        if self.is_offline(frame, order) {
            return Err(Error::Offline { frame });
        }
        self.check_unclaimed(frame, order)?;
        let before = self.lower.put(frame, order)?;
        let child = frame / G::HUGE;
        if order > G::ROW_ORDER {
            self.note_slowly(child, true);
        } else {
            self.note(child, before, 1 << order);
        }
        Ok(())
    }

    pub(crate) fn check_place(&self, frame: usize, order: u32) -> Result<(), Error> {
        let frames = self.frames();
        if order > G::MAX_ORDER {
            return Err(Error::Order { order, most: G::MAX_ORDER });
        }
        if frame & ((1 << order) - 1) != 0 {
            return Err(Error::Misaligned { frame, order });
        }
        if frame >= frames || frames - frame < 1 << order {
            return Err(Error::OutOfRange { frame, frames });
        }
        Ok(())
    }

    pub(crate) fn children_under(frame: usize, order: u32) -> core::ops::RangeInclusive<usize> {
        frame / G::HUGE..=(frame + (1 << order) - 1) / G::HUGE
    }

    /// An error if some frame is claimed and not handed out: it is free.
    #[inline]
    fn check_unclaimed(&self, frame: usize, order: u32) -> Result<(), Error> {
        if Self::children_under(frame, order).any(|child| self.lower.child(child).is_claimed()) {
            self.check_claims(frame, order)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn check_claims(&self, frame: usize, order: u32) -> Result<(), Error> {
        let children = Self::children_under(frame, order);
        let mut is_claimed = false;
        for claim in self.claims() {
            if claim.0 == 0 || !children.contains(&Lower::<G>::child_of(claim)) {
                continue;
            }
            is_claimed = true;
            if claim.has_any::<G>(frame, order) {
                return Err(Error::NotAllocated { frame, order });
            }
        }
        if !is_claimed && order <= G::HUGE_ORDER {
            let child = frame / G::HUGE;
            let _ = self.lower.update(child, |entry| Some(entry.unclaimed()));
            // A claim made since may have set its mark before we cleared the mark.
            if self.claims().any(|claim| claim.0 != 0 && Lower::<G>::child_of(claim) == child) {
                self.lower.mark_claimed(child);
            }
        }
        Ok(())
    }

    /// Makes the tree that the CPU frees into its own (LLFree §3.2.2, reserve-on-free), if that is
    /// nearly full and the old one is used up. Else every tree freed into would stay partial.
    #[inline(never)]
    fn prefer(&self, local: &Local, tree: usize) {
        let own = local.root().tree();
        if !self.trees.is_nearly_full(tree) || own.is_some_and(|own| Trees::count(own, &self.lower) > 0) {
            return;
        }
        let Some(before) = local.begin_taking() else { return };
        let kind = self.trees.entry(tree).kind();
        if self.trees.reserve(tree, kind) {
            local.end_taking(Root::new(tree, G::CHILDREN));
            if let Some(old) = before.tree() {
                self.trees.unreserve(old, &self.lower);
            }
        } else {
            local.end_taking(before);
        }
    }
}
