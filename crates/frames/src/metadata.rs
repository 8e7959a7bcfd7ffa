use crate::geometry::{Geometry, ROWS};
use crate::local::Local;
use crate::offline::Offline;
use crate::tree::{KINDS, Trees};
use craton_base::atomic::{AtomicU16, AtomicU32, AtomicU64};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// 8 for each huge frame.
    pub rows: usize,
    /// Two children in each.
    pub children: usize,
    pub trees: usize,
    pub index: usize,
    /// Lines of processors and of slots.
    pub locals: usize,
}

impl Sizes {
    pub const fn of<G: Geometry>(frames: usize, processors: usize) -> Self {
        let trees = frames.div_ceil(G::TREE);
        Self {
            rows: frames.div_ceil(G::HUGE) * ROWS,
            children: trees * G::CHILDREN / 2,
            trees,
            index: Trees::words(trees) + Offline::words(frames.div_ceil(G::HUGE)),
            locals: processors * KINDS + Self::slots::<G>(processors),
        }
    }

    pub(crate) const fn slots<G: Geometry>(processors: usize) -> usize {
        let slots = processors * G::SLOTS;
        if slots < 2 { 2 } else { slots.next_power_of_two() }
    }

    pub const fn bytes(&self) -> usize {
        8 * (self.rows + self.index) + 4 * self.children + 2 * self.trees + size_of::<Local>() * self.locals
    }
}

/// Any contents.
#[derive(Clone, Copy)]
pub struct Metadata<'a> {
    /// 8 words should be one cache line.
    pub rows: &'a [AtomicU64],
    /// Each tree's should be one cache line.
    pub children: &'a [AtomicU32],
    pub trees: &'a [AtomicU16],
    pub index: &'a [AtomicU64],
    pub locals: &'a [Local],
}
