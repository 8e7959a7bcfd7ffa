//! The paper's search for trees, to be measured beside ours (LLFree §3.2.2):
//! 1. of the 32 entries on the cache line of the CPU's tree, a *partial* or *free* one;
//! 2. the first *partial* one of all, for orders above 0 after the first *free* one (§4.2.1);
//! 3. the first *free* one, then the first *allocated* one with as many free frames;
//! 4. another CPU's tree.
//!
//! A CPU also reserves a *partial* tree after [`RESERVE_ON_FREE`] consecutive frees there. The
//! paper has no kinds: other kinds' trees come before other CPUs'.

use crate::geometry::{Geometry, Search};
use crate::local::{Local, Root};
use crate::media::Media;
use crate::tree::{ALL, Class, KINDS, Kind, Thresholds};
use crate::zone::{RESERVE_ON_FREE, Zone};
use core::marker::PhantomData;

const NEIGHBOURS: usize = 32;

/// Use [`Thresholds::PAPER`] and no claims:
/// ```
/// use craton_frames::{Config, Paper, Standard, Thresholds, Zone};
/// let config = Config { claims: false, thresholds: Thresholds::PAPER, ..Config::new(2) };
/// type PaperZone<'a> = Zone<'a, Paper<Standard>>;
/// # let _ = config;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Paper<G>(PhantomData<G>);

impl<G: Geometry> Geometry for Paper<G> {
    const ROW_ORDER: u32 = G::ROW_ORDER;
    const CHILDREN: usize = G::CHILDREN;
    const CLAIM_ORDER: u32 = G::CLAIM_ORDER;
    const SLOTS: usize = G::SLOTS;
    const SEARCH: Search = Search::Paper;
}

impl Thresholds {
    pub const PAPER: Self = Self { allocated: ALL / 8, free: ALL - ALL / 8 };
}

impl<G: Geometry, M: Media> Zone<'_, G, M> {
    /// Returns the tree's root.
    pub(crate) fn search_as_paper<R>(
        &self,
        own: Option<usize>,
        (kind, order): (Kind, u32),
        take: &impl Fn(usize, Option<usize>) -> Option<(R, usize)>,
    ) -> Option<(R, Root)> {
        use Class::{Allocated, Empty, Free, Partial};
        let all = || 0..self.trees.len();
        let line = own.unwrap_or(0) / NEIGHBOURS * NEIGHBOURS;
        let near = line..(line + NEIGHBOURS).min(self.trees.len());
        let first = |trees: core::ops::Range<usize>, classes: &[Class], is_own: bool| {
            let fits = |tree: &usize| {
                let is_kind = self.trees.entry(*tree).kind() == kind;
                let class = self.trees.open_class(*tree);
                class.is_some_and(|class| classes.contains(&class) && (class == Empty || is_kind == is_own))
            };
            trees.filter(fits).find_map(|tree| self.take_reserved(tree, kind, take))
        };
        let second: [&[Class]; 2] =
            if order == 0 { [&[Partial], &[Free, Empty]] } else { [&[Free, Empty], &[Partial]] };
        first(near, &[Partial, Free, Empty], true)
            .or_else(|| first(all(), second[0], true))
            .or_else(|| first(all(), second[1], true))
            .or_else(|| first(all(), &[Allocated], true))
            .or_else(|| first(all(), &[Partial, Free, Allocated], false))
            .or_else(|| self.steal(kind, take))
    }

    fn steal<R>(&self, kind: Kind, take: &impl Fn(usize, Option<usize>) -> Option<(R, usize)>) -> Option<(R, Root)> {
        self.locals[..self.config.processors * KINDS].iter().find_map(|other| {
            let tree = other.take_root()?;
            self.trees.unreserve(tree, &self.lower);
            self.take_reserved(tree, kind, take)
        })
    }

    #[inline]
    pub(crate) fn reserve_on_free(&self, local: &Local, frame: usize) {
        let tree = frame / G::TREE;
        let (_, run, now) = local.follows(frame >> G::CLAIM_ORDER, G::TREE >> G::CLAIM_ORDER);
        local.set_last(now);
        if run >= RESERVE_ON_FREE && self.trees.open_class(tree) == Some(Class::Partial) {
            self.make_own(local, tree);
        }
    }
}
