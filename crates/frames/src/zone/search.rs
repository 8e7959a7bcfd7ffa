//! How trees are found.
//!
//! The last resort searches all trees that may have free frames; then ends all claims and searches
//! again. One pass without claims and frees meanwhile proves a refusal ([`crate::proof`]).

use super::{TRIES, Zone};
use crate::geometry::Geometry;
use crate::local::{Local, Root};
use crate::media::Media;
use crate::tree::{Class, Kind};
use crate::word;
use craton_base::atomic;

const PATIENCE: usize = if cfg!(loom) { 20 } else { 1000 };
/// Trees that became wholly free unnoticed, and that one search passes over.
const LATE: usize = 16;

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// The paper takes free trees second, since nearly allocated ones fail soon; here the next is
    /// quickly found.
    pub(super) fn search_sets<R>(
        &self,
        own: Option<usize>,
        kind: Kind,
        take: &impl Fn(usize, Option<usize>) -> Option<(R, usize)>,
    ) -> Option<(R, Root)> {
        let from = own.map_or(0, |tree| tree + 1);
        let first = [(Class::Partial, kind), (Class::Allocated, kind), (Class::Free, kind), (Class::Empty, kind)];
        let others = kind.and_others().skip(1);
        let of_others = others.flat_map(|k| [(Class::Partial, k), (Class::Free, k), (Class::Allocated, k)]);
        let mut late = 0;
        first.into_iter().chain(of_others).find_map(|(class, kind_of)| {
            let set = self.trees.of(class, kind_of)?;
            let (mut at, mut tries) = (from, TRIES);
            while tries > 0 {
                let tree = set.next(at)?;
                // Frees of huge frames leave that to searches.
                if class != Class::Empty && self.note_empty(tree) && kind_of == kind && late < LATE {
                    (late, at) = (late + 1, tree + 1);
                    continue;
                }
                let found = self.take_reserved(tree, kind, take);
                if found.is_some() {
                    return found;
                }
                // A tree that left the set costs no try.
                tries -= usize::from(set.has(tree));
                at = tree + 1;
            }
            None
        })
    }

    fn note_empty(&self, tree: usize) -> bool {
        let is_late =
            self.trees.open_class(tree).is_some_and(|class| class != Class::Empty) && self.lower.is_tree_empty(tree);
        if is_late {
            self.trees.note(tree, &self.lower);
        }
        is_late
    }

    pub(crate) fn take_reserved<R>(
        &self,
        tree: usize,
        kind: Kind,
        take: &impl Fn(usize, Option<usize>) -> Option<(R, usize)>,
    ) -> Option<(R, Root)> {
        let is_empty = self.trees.open_class(tree) == Some(Class::Empty);
        let as_kind = if is_empty { kind } else { self.trees.entry(tree).kind() };
        if !self.trees.reserve(tree, as_kind) {
            return None;
        }
        let is_stranger = !Self::IS_PAPER && as_kind != kind;
        if let Some((found, child)) = take(tree, if is_stranger { self.lower.emptiest(tree) } else { None }) {
            return Some((found, Root::new(tree, child)));
        }
        self.trees.unreserve(tree, &self.lower);
        None
    }

    #[cold]
    pub(super) fn get_anywhere(&self, local: &Local, order: u32) -> Option<usize> {
        self.insist(local, |child| self.lower.take(child, order), order)
    }

    #[cold]
    pub(super) fn claim_anywhere(&self, local: &Local) -> Option<(usize, usize)> {
        self.insist(local, |child| self.claim(child), 0)
    }

    /// The CPU leaves its tree, and becomes a guest where it finds frames.
    fn insist<R>(&self, local: &Local, take: impl Fn(usize) -> Option<R>, order: u32) -> Option<R> {
        let from = local.root().place().unwrap_or(0);
        for _ in 0..PATIENCE {
            let watch = self.lower.proof.watch();
            let mut is_pending = false;
            if let Some((found, child)) = self.search(&take, (from, order), &mut is_pending) {
                if !Self::IS_PAPER && order < G::HUGE_ORDER {
                    self.move_root(local, Root::guest(child / G::CHILDREN, child % G::CHILDREN));
                }
                return Some(found);
            }
            // Asked last: frames that a claim had went back meanwhile, which ends the watch.
            if !is_pending && !self.has_claimed() && self.lower.proof.prove(watch, order) {
                return None;
            }
            self.end_claims();
            atomic::spin();
        }
        None
    }

    fn move_root(&self, local: &Local, root: Root) {
        let Some(before) = local.begin_taking() else { return };
        local.end_taking(root);
        if let Some(tree) = before.tree() {
            self.trees.unreserve(tree, &self.lower);
        }
    }

    fn search<R>(
        &self,
        take: &impl Fn(usize) -> Option<R>,
        (from, order): (usize, u32),
        is_pending: &mut bool,
    ) -> Option<(R, usize)> {
        let mut in_tree = |tree| self.try_tree(tree, take, order, is_pending);
        if order >= G::HUGE_ORDER {
            self.trees.huge().iter().find_map(&mut in_tree)
        } else {
            let trees = (from..self.trees.len()).chain(0..from);
            trees.filter(|tree| self.trees.entry(*tree).may_have_free()).find_map(&mut in_tree)
        }
    }

    fn try_tree<R>(
        &self,
        tree: usize,
        take: &impl Fn(usize) -> Option<R>,
        order: u32,
        is_pending: &mut bool,
    ) -> Option<(R, usize)> {
        word::visit();
        let frames = (1 << order).min(G::HUGE);
        let first = tree * G::CHILDREN;
        let step = 1 << order.saturating_sub(G::HUGE_ORDER);
        let found = (first..first + G::CHILDREN).step_by(step).find_map(|child| {
            let entry = self.lower.child(child);
            *is_pending |= entry.is_pending();
            let found = if entry.free() >= frames { take(child) } else { return None };
            let is_claim = order == 0 && self.config.claims;
            *is_pending |= found.is_none() && (is_claim || self.lower.child(child) != entry);
            Some((found?, child))
        });
        // Else the next search passes the tree over.
        let is_in_vain = found.is_none() && (order == 0 || order >= G::HUGE_ORDER);
        if is_in_vain || !self.trees.entry(tree).may_have_free() {
            self.mend(tree);
        }
        found
    }

    pub(super) fn mend(&self, tree: usize) {
        self.trees.note(tree, &self.lower);
        self.trees.note_huge(tree, &self.lower);
    }
}
