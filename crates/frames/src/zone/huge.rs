//! Huge frames.

use super::{TRIES, Zone};
use crate::geometry::Geometry;
use crate::local::Local;
use crate::media::Media;
use crate::word;

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// The one found last, if free again, or the tree's next.
    #[inline(never)]
    pub(super) fn take_huge_here(&self, local: &Local) -> Option<usize> {
        let last = local.huge()?;
        let found = self.lower.take_huge(last);
        if found.is_some() || (last + 1).is_multiple_of(G::CHILDREN) {
            return found;
        }
        let frame = self.lower.take_huge(last + 1)?;
        local.point_at(last + 1);
        Some(frame)
    }

    #[inline(always)]
    pub(super) fn take_two_here(&self, local: &Local) -> Option<usize> {
        let last = local.huge()? & !1;
        let found = self.lower.take_two(last);
        if found.is_some() || (last + 2).is_multiple_of(G::CHILDREN) {
            return found;
        }
        let frame = self.lower.take_two(last + 2)?;
        local.point_at(last + 2);
        Some(frame)
    }

    pub(super) fn get_huge(&self, local: &Local, order: u32, processor: usize) -> Option<usize> {
        // CPUs begin far apart: their entries share no line.
        let begin = || self.trees.len() * processor / self.config.processors;
        let mut at = local.huge().map_or_else(begin, |child| child / G::CHILDREN);
        for _ in 0..TRIES {
            let Some(tree) = self.trees.huge().next(at) else { break };
            if let Some((frame, child)) = self.take_huge_in(tree, order) {
                local.point_at(tree * G::CHILDREN + child);
                return Some(frame);
            }
            self.look_again(tree);
            at = tree + 1;
        }
        self.get_anywhere(local, order)
    }

    pub(crate) fn take_huge_in(&self, tree: usize, order: u32) -> Option<(usize, usize)> {
        word::visit();
        let (first, step) = (tree * G::CHILDREN, 1 << (order - G::HUGE_ORDER));
        (0..G::CHILDREN).step_by(step).find_map(|child| {
            let is_empty = self.lower.child(first + child).is_empty::<G>();
            let frame = if is_empty { self.lower.take(first + child, order)? } else { return None };
            Some((frame, child))
        })
    }
}
