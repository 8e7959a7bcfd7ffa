//! Huge frames: one change of an entry, found through the set of trees that have free ones.

use super::{TRIES, Zone};
use crate::geometry::Geometry;
use crate::local::Local;
use crate::media::Media;
use crate::word;

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// Takes the huge frames found last, if free again, or the next in the tree.
    #[inline]
    pub(super) fn take_huge_here(&self, local: &Local, order: u32) -> Option<usize> {
        if order > G::MAX_ORDER {
            return None;
        }
        let last = local.huge()?;
        if let Some(frame) = self.take_whole(last, order) {
            return Some(frame);
        }
        let next = last + (1 << (order - G::HUGE_ORDER));
        if next / G::CHILDREN != last / G::CHILDREN {
            return None;
        }
        let frame = self.take_whole(next, order)?;
        local.point_at(next);
        Some(frame)
    }

    #[inline(always)]
    fn take_whole(&self, child: usize, order: u32) -> Option<usize> {
        if order == G::HUGE_ORDER { self.lower.take_huge(child) } else { self.lower.take_two(child) }
    }

    /// Takes other huge frames of the last tree, or of the next that has free ones.
    pub(super) fn get_huge(&self, local: &Local, order: u32, processor: usize) -> Option<usize> {
        // CPUs begin far apart, so that their huge frames' entries share no line.
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
        self.get_anywhere(order)
    }

    pub(crate) fn take_huge_in(&self, tree: usize, order: u32) -> Option<(usize, usize)> {
        word::visit();
        let (first, step) = (tree * G::CHILDREN, 1 << (order - G::HUGE_ORDER));
        (0..G::CHILDREN).step_by(step).find_map(|child| {
            let is_empty = self.lower.child(first + child).is_empty::<G>();
            let frame = if is_empty { self.take_whole(first + child, order)? } else { return None };
            Some((frame, child))
        })
    }
}
