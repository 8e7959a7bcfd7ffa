//! The last resort: a search of all trees, reserved or not.
//!
//! **What.** It reads trees' entries, and only those trees that may have free frames; then, if some
//! are claimed, ends all claims and searches again. A refusal is proved by one pass, without claims.

use super::Zone;
use crate::geometry::Geometry;
use crate::media::Media;
use crate::word;
use craton_base::atomic;

/// Full searches while other CPUs move claims.
const PATIENCE: usize = if cfg!(loom) { 20 } else { 1000 };

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// Frames of any tree, when the CPU's own and the sets have none.
    #[cold]
    pub(super) fn get_anywhere(&self, order: u32) -> Option<usize> {
        self.insist(|child| self.lower.take(child, order), order)
    }

    /// A frame of any tree, and the half that was claimed for it.
    #[cold]
    pub(super) fn claim_anywhere(&self) -> Option<(usize, usize)> {
        self.insist(|child| self.lower.claim(child), 0)
    }

    fn insist<R>(&self, take: impl Fn(usize) -> Option<R>, order: u32) -> Option<R> {
        for _ in 0..PATIENCE {
            let before = self.claims();
            let mut is_pending = false;
            if let Some(found) = self.search(&take, order, &mut is_pending) {
                return Some(found);
            }
            if !before.1 && !is_pending && self.claims() == before {
                return None;
            }
            self.end_claims();
            atomic::spin();
        }
        None
    }

    /// Tries each child that has as many free frames; tells whether some child's count is in motion.
    fn search<R>(&self, take: &impl Fn(usize) -> Option<R>, order: u32, is_pending: &mut bool) -> Option<R> {
        let mut in_tree = |tree| self.try_tree(tree, take, order, is_pending);
        if order >= G::HUGE_ORDER {
            self.trees.huge().iter().find_map(&mut in_tree)
        } else {
            (0..self.trees.len()).filter(|tree| self.trees.entry(*tree).may_have_free()).find_map(&mut in_tree)
        }
    }

    fn try_tree<R>(
        &self,
        tree: usize,
        take: &impl Fn(usize) -> Option<R>,
        order: u32,
        is_pending: &mut bool,
    ) -> Option<R> {
        word::visit();
        let frames = (1 << order).min(G::HUGE);
        let first = tree * G::CHILDREN;
        let step = 1 << order.saturating_sub(G::HUGE_ORDER);
        let found = (first..first + G::CHILDREN).step_by(step).find_map(|child| {
            let entry = self.lower.child(child);
            *is_pending |= entry.is_pending();
            if entry.free() >= frames { take(child) } else { None }
        });
        if !self.trees.entry(tree).may_have_free() || found.is_none() && order >= G::HUGE_ORDER {
            self.mend(tree);
        }
        found
    }

    /// Notes a tree that was known as full while an allocation that has failed had its frames.
    pub(super) fn mend(&self, tree: usize) {
        self.trees.note(tree, &self.lower);
        self.trees.note_huge(tree, &self.lower);
    }
}
