//! Frees (LLFree §3.2.2). A single frame joins its half's claim, or is freed alone. Frees of
//! neighbouring halves, rising as in a loop or falling as in Linux's batches, or two in one half,
//! begin a claim.

use super::{RESERVE_ON_FREE, Zone};
use crate::child::Child;
use crate::claim::Claim;
use crate::config::Request;
use crate::error::Error;
use crate::geometry::{Geometry, QUARTERS, ROWS};
use crate::local::{Last, Local, Root};
use crate::lower::Refused;
use crate::media::Media;
use crate::tree::{ALL, Class, KINDS, Trees};

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    #[inline]
    pub fn put(&self, frame: usize, request: Request) -> Result<(), Error> {
        let local = self.local(request.processor, request.kind)?;
        // Stores before a locked operation delay it: save no register, write no error.
        let is_done = self.put_block(local, request.processor, frame, request.order);
        let done = if is_done { Ok(()) } else { self.put_group(frame, request.order) };
        if Self::IS_PAPER && done.is_ok() && (request.order > 0 || !self.config.claims) {
            self.reserve_on_free(local, frame);
        }
        done
    }

    #[inline(always)]
    fn put_block(&self, local: &Local, processor: usize, frame: usize, order: u32) -> bool {
        if order > 0 {
            return if order <= G::ROW_ORDER {
                self.put_row(frame, order)
            } else if order == G::HUGE_ORDER {
                self.put_huge(frame)
            } else if order < G::HUGE_ORDER {
                self.put_quarters(frame, order)
            } else {
                order == G::MAX_ORDER && self.put_two(frame)
            };
        }
        if frame >= self.frames() {
            return false;
        }
        if !self.config.claims {
            return self.put_plain(frame);
        }
        // The row tells whether to read the slot, which other CPUs may be changing.
        let (bits, is_marked) = self.lower.row_of(frame);
        if is_marked { self.put_claimed(frame) } else { self.put_alone(local, processor, frame, bits) }
    }

    #[inline(always)]
    fn put_claimed(&self, frame: usize) -> bool {
        let (half, bit) = Claim::of::<G>(frame);
        let slot = self.lower.slots.of(half);
        loop {
            let claim = slot.read();
            if !claim.is_of(half) || claim.mask() & bit != 0 {
                return false;
            }
            if slot.exchange(claim, claim.with(bit)) {
                return self.finish();
            }
        }
    }

    #[inline(always)]
    fn finish(&self) -> bool {
        if self.lower.proof.is_watched() { self.finish_watched() } else { true }
    }

    #[cold]
    #[inline(never)]
    fn finish_watched(&self) -> bool {
        self.lower.proof.end_watched();
        true
    }

    #[inline(never)]
    fn put_alone(&self, local: &Local, processor: usize, frame: usize, bits: u64) -> bool {
        let (last, run, now) = local.follows(frame >> G::CLAIM_ORDER, G::TREE >> G::CLAIM_ORDER);
        if last != Last::Elsewhere || run == RESERVE_ON_FREE {
            local.set_last(now);
            return self.put_again(processor, frame, last);
        }
        let before = self.lower.put_unmarked(frame, bits);
        local.set_last(now);
        match before {
            Some(before) => self.note_freed(frame / G::HUGE, before, 1),
            None => false,
        }
    }

    #[inline(never)]
    fn put_again(&self, processor: usize, frame: usize, last: Last) -> bool {
        let ((half, bit), tree) = (Claim::of::<G>(frame), frame / G::TREE);
        // The caller does not know what the frame was, but its tree has a kind.
        let local = &self.locals[processor * KINDS + self.trees.entry(tree).kind() as usize];
        // Another CPU's tree is left to its claims.
        let is_ours = || local.root().tree() == Some(tree) || !self.trees.entry(tree).is_reserved();
        match last {
            Last::Beside if is_ours() && self.lower.open_with(half, bit) => {
                self.name(&local.puts, half);
                return self.finish();
            }
            Last::Here if is_ours() => {
                if !self.put_plain(frame) {
                    return false;
                }
                if self.lower.claim_half(half, false).is_some() {
                    self.name(&local.puts, half);
                }
                return true;
            }
            Last::Elsewhere => self.prefer(local, tree),
            _ => {}
        }
        self.put_plain(frame)
    }

    #[inline(never)]
    fn put_plain(&self, frame: usize) -> bool {
        let Some(before) = self.lower.put_bit(frame) else { return false };
        self.note_freed(frame / G::HUGE, before, 1)
    }

    #[inline(never)]
    fn note_put(&self, child: usize, free: usize) -> bool {
        self.note_step(child, free == G::HUGE);
        self.finish()
    }

    #[inline(never)]
    fn put_huge(&self, frame: usize) -> bool {
        if !self.is_place(frame, G::HUGE_ORDER) || self.offline.has_any() {
            return false;
        }
        let child = frame / G::HUGE;
        let Some(is_pair_empty) = self.lower.put_huge(child) else { return false };
        self.note_huge(child, is_pair_empty)
    }

    #[inline(never)]
    fn put_two(&self, frame: usize) -> bool {
        if !self.is_place(frame, G::MAX_ORDER) || self.offline.has_any() || !self.lower.put_two(frame / G::HUGE) {
            return false;
        }
        self.note_huge(frame / G::HUGE, false)
    }

    /// Notes a tree's first wholly free huge frame: a free that saw another one leaves it to that.
    /// So most frees only read the line that they changed.
    #[inline(always)]
    fn note_huge(&self, child: usize, is_other_free: bool) -> bool {
        if is_other_free | self.lower.is_one_free_before(child) {
            return if Self::IS_PAPER { self.note_last(child) } else { self.finish() };
        }
        self.note_first(child)
    }

    #[inline(always)]
    fn note_first(&self, child: usize) -> bool {
        let tree = child / G::CHILDREN;
        if !self.trees.huge().has(tree) | self.trees.entry(tree).is_full() {
            return self.note_new(child);
        }
        if Self::IS_PAPER { self.note_last(child) } else { self.finish() }
    }

    #[inline(never)]
    fn note_new(&self, child: usize) -> bool {
        self.trees.reveal(child / G::CHILDREN, &self.lower);
        if Self::IS_PAPER { self.note_last(child) } else { self.finish() }
    }

    /// For the paper's search.
    #[inline(never)]
    fn note_last(&self, child: usize) -> bool {
        let tree = child / G::CHILDREN;
        if !self.trees.entry(tree).is_empty() && self.lower.is_tree_empty(tree) {
            self.trees.note_as(tree, ALL, &self.lower);
        }
        self.finish()
    }

    #[inline(always)]
    fn is_place(&self, frame: usize, order: u32) -> bool {
        let last = (1 << order) - 1;
        frame & last == 0 && frame | last < self.frames()
    }

    #[inline(never)]
    fn put_row(&self, frame: usize, order: u32) -> bool {
        if !self.is_place(frame, order) {
            return false;
        }
        match self.lower.put_group_of_bits(frame, order) {
            Some(before) => self.note_freed(frame / G::HUGE, before, 1 << order),
            None => false,
        }
    }

    #[inline(never)]
    fn put_quarters(&self, frame: usize, order: u32) -> bool {
        if !self.is_place(frame, order) || self.offline.has_any() {
            return false;
        }
        match self.lower.put_quarters(frame, order) {
            Some(before) => self.note_freed(frame / G::HUGE, before, 1 << order),
            None => false,
        }
    }

    #[inline(always)]
    fn note_freed(&self, child: usize, before: Child, freed: usize) -> bool {
        if !Self::is_of_note(before, freed) {
            return self.finish();
        }
        self.note_put(child, before.free() + freed)
    }

    #[inline(never)]
    pub(crate) fn put_group(&self, frame: usize, order: u32) -> Result<(), Error> {
        self.check_place(frame, order)?;
        if self.is_offline(frame, order) {
            return Err(Error::Offline { frame });
        }
        match self.put_piece(frame, order) {
            Ok(before) if order < G::HUGE_ORDER => self.note(frame / G::HUGE, before, 1 << order),
            Err(Refused::Pieces) if !self.put_pieces(frame, order) => return Err(Error::NotAllocated { frame, order }),
            Ok(_) | Err(Refused::Pieces) => {
                Self::children_under(frame, order).for_each(|child| self.note_slowly(child, true));
            }
            Err(_) => return Err(Error::NotAllocated { frame, order }),
        }
        self.lower.proof.end();
        Ok(())
    }

    fn put_piece(&self, frame: usize, order: u32) -> Result<Child, Refused> {
        loop {
            match self.lower.put(frame, order) {
                Err(Refused::Blocked(half)) => self.unblock(half),
                Err(Refused::Again) => {}
                done => return done,
            }
        }
    }

    /// Returns whether all were allocated; of two such frees, one frees the first piece.
    fn put_pieces(&self, frame: usize, order: u32) -> bool {
        let rows_of = |child: usize| {
            let first = (frame.max(child * G::HUGE) % G::HUGE) >> G::ROW_ORDER;
            first..first + (1usize << order.min(G::HUGE_ORDER) >> G::ROW_ORDER)
        };
        let mut children = Self::children_under(frame, order);
        if self.are_claimed(frame, order) || !children.all(|child| self.lower.are_allocated(child, rows_of(child))) {
            return false;
        }
        let quarter_order = G::HUGE_ORDER - QUARTERS.trailing_zeros();
        let mut is_first = true;
        for at in (frame..frame + (1 << order)).step_by(1 << quarter_order) {
            let row_of = |row: usize| self.put_piece(at + (row << G::ROW_ORDER), G::ROW_ORDER).is_ok();
            let mut is_freed = self.put_piece(at, quarter_order).is_ok();
            if !is_freed {
                for row in 0..ROWS / QUARTERS {
                    is_freed = row_of(row);
                    if is_first && !is_freed {
                        return false;
                    }
                    is_first = false;
                }
            }
            is_first = false;
        }
        true
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

    /// Reserve-on-free (LLFree §3.2.2). Elsewhere than in nearly full trees, each tree freed into
    /// would stay partial.
    #[inline(never)]
    fn prefer(&self, local: &Local, tree: usize) {
        let own = local.root().tree();
        let is_due = match Self::IS_PAPER {
            true => self.trees.open_class(tree) == Some(Class::Partial),
            false => self.trees.is_nearly_full(tree) && own.is_none_or(|own| Trees::count(own, &self.lower) == 0),
        };
        if is_due {
            self.make_own(local, tree);
        }
    }

    /// Unless either is being reserved or searched.
    pub(crate) fn make_own(&self, local: &Local, tree: usize) {
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
