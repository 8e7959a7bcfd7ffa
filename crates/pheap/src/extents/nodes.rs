//! NVAlloc's virtual extent headers (VEH, §2.2), in an array.

use super::bins::By;
use super::plan::{Extent, ExtentKind, RangeState, UNIT_PAGES};
use crate::book_log::Slot;
use std::ops::{Index, IndexMut};

pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Links {
    pub(super) prev: u32,
    pub(super) next: u32,
}

impl Links {
    const NONE: Self = Self { prev: NONE, next: NONE };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Vacant,
    Live,
    /// Its tombstone is planned.
    Freeing,
    Log,
    Reclaimed,
    Retained,
    Discarding,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) page: u64,
    pub(super) pages: u64,
    /// The last epoch that freed a part.
    pub(super) epoch: u64,
    /// In use: in the log.
    pub(super) slot: Slot,
    pub(super) tombstone: Slot,
    by_pages: Links,
    by_units: Links,
    pub(super) age: Links,
    pub(super) state: State,
    pub(super) kind: ExtentKind,
}

impl Node {
    pub(super) fn new(page: u64, pages: u64, state: State) -> Self {
        Self {
            page,
            pages,
            epoch: 0,
            slot: Slot::NOWHERE,
            tombstone: Slot::NOWHERE,
            by_pages: Links::NONE,
            by_units: Links::NONE,
            age: Links::NONE,
            state,
            kind: ExtentKind::Object,
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.page + self.pages
    }

    /// Whole ones inside.
    pub(super) fn units(&self) -> u64 {
        (self.end() / UNIT_PAGES).saturating_sub(self.page.div_ceil(UNIT_PAGES))
    }

    pub(super) fn links(&mut self, by: By) -> &mut Links {
        match by {
            By::Pages => &mut self.by_pages,
            By::Units => &mut self.by_units,
        }
    }

    pub(super) fn links_of(&self, by: By) -> Links {
        match by {
            By::Pages => self.by_pages,
            By::Units => self.by_units,
        }
    }

    pub(super) fn extent(&self) -> Option<Extent> {
        let is_used = matches!(self.state, State::Live | State::Freeing);
        is_used.then_some(Extent { page: self.page, pages: self.pages as u32, kind: self.kind })
    }

    pub(super) fn public_state(&self) -> RangeState {
        match self.state {
            State::Live | State::Freeing => RangeState::Used(self.kind),
            State::Log => RangeState::Log,
            State::Reclaimed => RangeState::Reclaimed,
            State::Discarding => RangeState::Discarding,
            State::Retained | State::Vacant => RangeState::Retained,
        }
    }
}

/// A node keeps its number.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    vacant: Vec<u32>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), vacant: Vec::new() }
    }

    pub(super) fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
    }

    pub(super) fn add(&mut self, node: Node) -> u32 {
        match self.vacant.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.nodes[index as usize].state = State::Vacant;
        self.vacant.push(index);
    }
}

impl Index<u32> for Nodes {
    type Output = Node;

    #[inline]
    fn index(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }
}

impl IndexMut<u32> for Nodes {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }
}
