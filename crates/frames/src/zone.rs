//! A zone: the upper level over the lower one (LLFree §3.2.2 and the appendix).
//!
//! Order 0 comes from the CPU's claims, other orders from its tree. [`Error::NoMemory`] comes only
//! when no tree has aligned free frames of the order, also after every CPU returned its claims.

mod begin;
mod claims;
mod huge;
mod put;
mod search;

use crate::child::Child;
use crate::config::{Config, Request};
use crate::error::Error;
use crate::geometry::{Geometry, Search, Standard};
use crate::local::Local;
use crate::lower::Lower;
use crate::media::{Media, Volatile};
use crate::offline::Offline;
use crate::tree::{KINDS, Kind, Trees};
use crate::word;

/// Consecutive frees to a tree before the CPU prefers it, F (LLFree §3.2.2).
pub(crate) const RESERVE_ON_FREE: u32 = 4;
const TRIES: usize = 3;
/// A tree's class is checked each time another 1/8 of a huge frame is free.
const NOTES: usize = 8;
const MOST_CHILDREN: usize = 64;

/// `M` is the lower level's persistence.
pub struct Zone<'a, G = Standard, M = Volatile> {
    pub(crate) lower: Lower<'a, G, M>,
    pub(crate) trees: Trees<'a>,
    pub(crate) locals: &'a [Local],
    pub(crate) config: Config,
    pub(crate) offline: Offline<'a>,
}

impl<'a, G: Geometry, M: Media> Zone<'a, G, M> {
    pub(crate) const IS_PAPER: bool = matches!(G::SEARCH, Search::Paper);

    pub fn frames(&self) -> usize {
        self.lower.frames()
    }

    pub(crate) fn local(&self, processor: usize, kind: Kind) -> Result<&'a Local, Error> {
        let processors = self.config.processors;
        if processor >= processors {
            return Err(Error::Processor { processor, processors });
        }
        Ok(&self.locals[processor * KINDS + kind as usize])
    }

    #[inline]
    pub fn get(&self, request: Request) -> Result<usize, Error> {
        let local = self.local(request.processor, request.kind)?;
        let found = match request.order {
            0 if self.config.claims => self.pop(&local.gets),
            order if order == G::HUGE_ORDER && !Self::IS_PAPER => self.take_huge_here(local),
            order => self.take_here(local, order),
        };
        match found {
            Some(frame) => Ok(frame),
            None => self.get_slowly(local, request),
        }
    }

    #[inline(never)]
    fn get_slowly(&self, local: &Local, Request { order, kind, processor }: Request) -> Result<usize, Error> {
        if order > G::MAX_ORDER {
            return Err(Error::Order { order, most: G::MAX_ORDER });
        }
        if !Self::IS_PAPER && self.lower.proof.refuses(order) {
            return Err(Error::NoMemory);
        }
        let found = if order >= G::HUGE_ORDER && !Self::IS_PAPER {
            self.get_huge(local, order, processor)
        } else if order == 0 && self.config.claims {
            self.get_claimed(local, kind)
        } else {
            self.get_some(local, (kind, order), |tree, last| self.take_in(tree, last, order))
                .or_else(|| self.get_anywhere(local, order))
        };
        found.ok_or(Error::NoMemory)
    }

    #[inline(always)]
    pub(crate) fn note(&self, child: usize, before: Child, freed: usize) {
        if Self::is_of_note(before, freed) {
            self.note_step(child, before.free() + freed == G::HUGE);
        }
    }

    /// Of a reserved tree only a wholly free huge frame counts, of a partial one many frames.
    #[inline]
    pub(crate) fn note_step(&self, child: usize, is_empty: bool) {
        let tree = child / G::CHILDREN;
        let is_due = match self.trees.can_matter(tree) {
            Some(can_matter) => can_matter || is_empty && self.lower.are_neighbours_empty(child),
            None => false,
        };
        if is_due || is_empty && !self.trees.huge().has(tree) {
            self.note_slowly(child, is_empty);
        }
    }

    #[inline(always)]
    fn is_of_note(before: Child, freed: usize) -> bool {
        let (free, part) = (before.free(), G::HUGE / NOTES);
        free / part != (free + freed) / part || free == 0
    }

    #[inline(never)]
    pub(crate) fn note_slowly(&self, child: usize, is_empty: bool) {
        let tree = child / G::CHILDREN;
        self.trees.note(tree, &self.lower);
        if is_empty && !self.trees.huge().has(tree) {
            self.trees.note_huge(tree, &self.lower);
        }
    }

    pub(crate) fn look_again(&self, tree: usize) {
        self.trees.note_huge(tree, &self.lower);
        self.trees.note(tree, &self.lower);
    }

    /// `from`, then the fullest.
    fn children(&self, tree: usize, from: usize, frames: usize) -> impl Iterator<Item = usize> + '_ {
        let first = tree * G::CHILDREN;
        let free = move |child: usize| self.lower.child(first + child).free();
        let mut next = Some(from).filter(|from| *from < G::CHILDREN && free(*from) >= frames);
        let mut fullest = true;
        // Count and number, read once.
        let mut left: Option<[u32; MOST_CHILDREN]> = None;
        let mut before = u32::MAX;
        core::iter::from_fn(move || {
            if let Some(child) = next.take() {
                return Some(first + child);
            }
            if core::mem::take(&mut fullest) {
                before = self.lower.fullest(tree, from, frames);
                return (before != u32::MAX).then_some(first + (before & 0xff) as usize);
            }
            let left = left.get_or_insert_with(|| {
                let key = |child: usize| match free(child) {
                    there if there >= frames && child != from && child != (before & 0xff) as usize => {
                        (there << 8 | child) as u32
                    }
                    _ => u32::MAX,
                };
                core::array::from_fn(|child| if child < G::CHILDREN { key(child) } else { u32::MAX })
            });
            let best = left[..G::CHILDREN].iter().copied().min().filter(|key| *key != u32::MAX)?;
            let child = (best & 0xff) as usize;
            left[child] = u32::MAX;
            Some(first + child)
        })
    }

    #[inline(never)]
    fn take_here(&self, local: &Local, order: u32) -> Option<usize> {
        if Self::IS_PAPER && order >= G::HUGE_ORDER {
            return None;
        }
        if order > G::HUGE_ORDER {
            return if order == G::MAX_ORDER { self.take_two_here(local) } else { None };
        }
        let root = local.root();
        let child = root.place()? * G::CHILDREN + root.child();
        if root.child() >= G::CHILDREN {
            None
        } else if order > G::ROW_ORDER {
            self.lower.take_quarters(child, order)
        } else {
            self.lower.take_bits(child, order)
        }
    }

    fn take_in(&self, tree: usize, last: Option<usize>, order: u32) -> Option<(usize, usize)> {
        word::visit();
        self.children(tree, last.unwrap_or(G::CHILDREN), 1 << order)
            .find_map(|child| Some((self.lower.take(child, order)?, child % G::CHILDREN)))
    }

    /// `take` gets the tree and its last used huge frame; returns its result and the huge frame.
    fn get_some<R>(
        &self,
        local: &Local,
        (kind, order): (Kind, u32),
        take: impl Fn(usize, Option<usize>) -> Option<(R, usize)>,
    ) -> Option<R> {
        let root = local.root();
        let has_free = |tree| self.lower.has_free(tree, root.child(), 1 << order);
        let is_strange = |tree| !Self::IS_PAPER && self.trees.entry(tree).kind() != kind;
        let last =
            |tree| if !has_free(tree) && is_strange(tree) { self.lower.emptiest(tree) } else { Some(root.child()) };
        // A guest leaves an open tree, and one of another kind when its huge frame is full.
        let stays = |tree: &usize| {
            let is_reserved = self.trees.entry(*tree).is_reserved();
            root.tree().is_some() || is_reserved && (has_free(*tree) || !is_strange(*tree))
        };
        if let Some((found, child)) = root.place().filter(stays).and_then(|tree| take(tree, last(tree))) {
            local.move_on(root, child);
            return Some(found);
        }
        self.get_elsewhere(local, (kind, order), &take)
    }

    #[inline(never)]
    fn get_elsewhere<R>(
        &self,
        local: &Local,
        (kind, order): (Kind, u32),
        take: &impl Fn(usize, Option<usize>) -> Option<(R, usize)>,
    ) -> Option<R> {
        // Fails if a CPU that shares the words is searching.
        let before = local.begin_taking()?;
        let found = match Self::IS_PAPER {
            true => self.search_as_paper(before.tree(), (kind, order), take),
            false => self.search_sets(before.tree(), kind, take),
        };
        match found {
            Some((found, root)) => {
                local.end_taking(root);
                if let Some(tree) = before.tree() {
                    self.trees.unreserve(tree, &self.lower);
                }
                Some(found)
            }
            None => {
                local.end_taking(before);
                None
            }
        }
    }

    /// All or none.
    pub fn get_at(&self, frame: usize, order: u32) -> Result<(), Error> {
        self.check_place(frame, order)?;
        let refused =
            || if self.is_offline(frame, order) { Error::Offline { frame } } else { Error::InUse { frame, order } };
        let take = || self.lower.take_at(frame, order);
        let take_unclaimed = |_| {
            self.end_claims();
            take()
        };
        // Other CPUs may claim in between.
        take().or_else(|| (0..TRIES).find_map(take_unclaimed)).ok_or_else(|| {
            self.mend(frame / G::TREE);
            refused()
        })
    }

    pub fn drain(&self, processor: usize) -> Result<(), Error> {
        for kind in Kind::Movable.and_others() {
            let local = self.local(processor, kind)?;
            [&local.gets, &local.puts].into_iter().for_each(|word| self.forget(word));
            if let Some(tree) = local.take_root() {
                self.trees.unreserve(tree, &self.lower);
            }
        }
        Ok(())
    }

    /// False: a request of the order was refused, and nothing was freed since. One load.
    #[inline]
    pub fn may_have(&self, order: u32) -> bool {
        order <= G::MAX_ORDER && (Self::IS_PAPER || !self.lower.proof.refuses(order))
    }

    /// Exact when nothing is under way.
    pub fn free_frames(&self) -> usize {
        let is_open = |tree: &usize| self.trees.entry(*tree).may_have_free();
        let free: usize = (0..self.trees.len()).filter(is_open).map(|tree| Trees::frames(tree, &self.lower)).sum();
        free + self.lower.slots.iter().map(|slot| slot.read().frames()).sum::<usize>()
    }

    pub fn free_huge_frames(&self) -> usize {
        (0..self.lower.huge_frames()).filter(|child| self.lower.child(*child).is_empty::<G>()).count()
    }

    /// Claimed frames are not free.
    pub fn is_free(&self, frame: usize) -> Result<bool, Error> {
        self.check_place(frame, 0)?;
        Ok(!self.lower.is_allocated(frame))
    }
}
