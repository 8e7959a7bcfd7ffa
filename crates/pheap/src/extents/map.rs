//! The ranges of the data area: in use or free, with memory or without.
//!
//! **Invariants.** *E1* Every page of the data area lies in one range. *E2* Neighbours that are
//! free and have memory alike are one range. *E3* A range of whole units begins at a unit; a
//! smaller one lies in a unit. *E4* A free range is in the bins and the age list of its state.

use super::bins::{Bins, By};
use super::nodes::{Links, NONE, Node, Nodes, State};
use super::plan::UNIT_PAGES;
use super::starts::Starts;
use super::tags::Tags;

/// Badly aligned ranges of a size before the next size.
const TRIES: usize = 4;

/// Oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    first: u32,
    last: u32,
    pub(super) pages: u64,
    pub(super) ranges: u64,
}

impl Age {
    const EMPTY: Self = Self { first: NONE, last: NONE, pages: 0, ranges: 0 };
}

pub(super) struct Map {
    pub(super) nodes: Nodes,
    tags: Tags,
    starts: Starts,
    by_pages: Bins,
    by_units: Bins,
    pub(super) reclaimed: Age,
    pub(super) retained: Age,
    first: u64,
    end: u64,
}

impl Map {
    pub(super) fn new(first: u64) -> Self {
        Self {
            nodes: Nodes::new(),
            tags: Tags::new(),
            starts: Starts::new(),
            by_pages: Bins::new(By::Pages),
            by_units: Bins::new(By::Units),
            reclaimed: Age::EMPTY,
            retained: Age::EMPTY,
            first,
            end: first,
        }
    }

    pub(super) fn reserve(&mut self, end: u64, used: usize) {
        self.tags.grow(end - self.first);
        self.starts.grow(end - self.first);
        // A free one may lie between any two.
        self.nodes.reserve(2 * used + 1);
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn extend(&mut self, end: u64, state: State) -> u32 {
        let page = self.end;
        self.tags.grow(end - self.first);
        self.starts.grow(end - self.first);
        self.end = end;
        let node = self.add(Node::new(page, end - page, state));
        if is_free(state) { self.free(node, state, 0) } else { node }
    }

    /// They are free.
    pub(super) fn truncate(&mut self, pages: u64) {
        let Some(node) = self.last() else { return };
        self.unlink(node);
        self.end -= pages;
        if self.nodes[node].pages == pages {
            self.drop_node(node);
            return;
        }
        self.nodes[node].pages -= pages;
        self.tag(node);
        self.link(node);
    }

    pub(super) fn last(&self) -> Option<u32> {
        self.ending_at(self.end)
    }

    #[inline]
    pub(super) fn starting_at(&self, page: u64) -> Option<u32> {
        if page < self.first || page >= self.end {
            return None;
        }
        let node = self.tags.get(page - self.first)?;
        let there = &self.nodes[node];
        (there.page == page && there.state != State::Vacant).then_some(node)
    }

    #[inline]
    fn ending_at(&self, page: u64) -> Option<u32> {
        if page <= self.first || page > self.end { None } else { self.tags.get(page - 1 - self.first) }
    }

    pub(super) fn containing(&self, page: u64) -> Option<u32> {
        if page < self.first || page >= self.end {
            return None;
        }
        self.starting_at(self.first + self.starts.last_up_to(page - self.first)?)
    }

    /// By address.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut page = self.first;
        std::iter::from_fn(move || {
            let node = self.starting_at(page)?;
            page = self.nodes[node].end();
            Some(node)
        })
    }

    /// The best fit, and its former state.
    pub(super) fn carve(&mut self, pages: u64, state: State, accept: impl Fn(&Node) -> bool) -> Option<(u32, State)> {
        let nodes = &self.nodes;
        let node = if pages.is_multiple_of(UNIT_PAGES) {
            self.by_units.find(nodes, pages / UNIT_PAGES, usize::MAX, |node| accept(&nodes[node]))
        } else {
            let fits = |node: u32| place(&nodes[node], pages).is_some() && accept(&nodes[node]);
            let tries = if pages < UNIT_PAGES { TRIES } else { usize::MAX };
            self.by_pages.find(nodes, pages, tries, fits)
        }?;
        let page = place(&self.nodes[node], pages)?;
        let before = self.nodes[node].state;
        Some((self.split(node, page, pages, state), before))
    }

    fn split(&mut self, node: u32, page: u64, pages: u64, state: State) -> u32 {
        let old = self.nodes[node];
        self.unlink(node);
        if page == old.page && pages == old.pages {
            self.nodes[node].state = state;
            return node;
        }
        // The rest behind keeps the node.
        let (end, old_end) = (page + pages, old.end());
        if page > old.page {
            let mut before = old;
            before.pages = page - old.page;
            if end == old_end {
                self.nodes[node] = before;
                self.tag(node);
                self.link(node);
                return self.add_of(&old, page, pages, state);
            }
            let before = self.add(before);
            self.link(before);
        }
        self.nodes[node].page = end;
        self.nodes[node].pages = old_end - end;
        self.tag(node);
        self.starts.insert(end - self.first);
        self.link(node);
        self.add_of(&old, page, pages, state)
    }

    /// Keeps the epoch of `old`: the plan may be cancelled.
    fn add_of(&mut self, old: &Node, page: u64, pages: u64, state: State) -> u32 {
        let mut part = Node::new(page, pages, state);
        part.epoch = old.epoch;
        self.add(part)
    }

    /// Coalesces with neighbours of the same state.
    pub(super) fn free(&mut self, node: u32, state: State, epoch: u64) -> u32 {
        let mut epoch = epoch;
        let (mut page, mut end) = (self.nodes[node].page, self.nodes[node].end());
        if let Some(before) = self.ending_at(page).filter(|before| self.nodes[*before].state == state) {
            self.unlink(before);
            self.starts.remove(page - self.first);
            page = self.nodes[before].page;
            epoch = epoch.max(self.nodes[before].epoch);
            self.nodes.remove(before);
        }
        if let Some(after) = self.starting_at(end).filter(|after| self.nodes[*after].state == state) {
            self.unlink(after);
            self.starts.remove(end - self.first);
            end = self.nodes[after].end();
            epoch = epoch.max(self.nodes[after].epoch);
            self.nodes.remove(after);
        }
        let there = &mut self.nodes[node];
        (there.page, there.pages, there.state, there.epoch) = (page, end - page, state, epoch);
        self.tag(node);
        self.link(node);
        node
    }

    pub(super) fn oldest(&self, state: State) -> Option<u32> {
        let age = if state == State::Reclaimed { &self.reclaimed } else { &self.retained };
        (age.first != NONE).then_some(age.first)
    }

    /// Out of the bins.
    pub(super) fn withdraw(&mut self, node: u32, state: State) {
        self.unlink(node);
        self.nodes[node].state = state;
    }

    /// As if all free ranges had memory.
    pub(super) fn merge_all(&mut self) {
        while let Some(node) = self.oldest(State::Retained) {
            let epoch = self.nodes[node].epoch;
            self.unlink(node);
            self.free(node, State::Reclaimed, epoch);
        }
    }

    fn add(&mut self, node: Node) -> u32 {
        self.starts.insert(node.page - self.first);
        let index = self.nodes.add(node);
        self.tag(index);
        index
    }

    fn drop_node(&mut self, node: u32) {
        self.starts.remove(self.nodes[node].page - self.first);
        self.nodes.remove(node);
    }

    #[inline]
    fn tag(&mut self, node: u32) {
        let there = &self.nodes[node];
        self.tags.set(there.page - self.first, node);
        self.tags.set(there.end() - 1 - self.first, node);
    }

    /// E4.
    #[inline]
    fn link(&mut self, node: u32) {
        let there = &self.nodes[node];
        let (pages, units, is_backed) = (there.pages, there.units(), there.state == State::Reclaimed);
        self.by_pages.insert(&mut self.nodes, node, pages, is_backed);
        if units > 0 {
            self.by_units.insert(&mut self.nodes, node, units, is_backed);
        }
        let age = if is_backed { &mut self.reclaimed } else { &mut self.retained };
        let last = std::mem::replace(&mut age.last, node);
        match last {
            NONE => age.first = node,
            last => self.nodes[last].age.next = node,
        }
        age.pages += pages;
        age.ranges += 1;
        self.nodes[node].age = Links { prev: last, next: NONE };
    }

    #[inline]
    fn unlink(&mut self, node: u32) {
        let there = self.nodes[node];
        let units = there.units();
        self.by_pages.remove(&mut self.nodes, node, there.pages);
        if units > 0 {
            self.by_units.remove(&mut self.nodes, node, units);
        }
        let age = if there.state == State::Reclaimed { &mut self.reclaimed } else { &mut self.retained };
        age.pages -= there.pages;
        age.ranges -= 1;
        match there.age.prev {
            NONE => age.first = there.age.next,
            prev => self.nodes[prev].age.next = there.age.next,
        }
        match there.age.next {
            NONE => age.last = there.age.prev,
            next => self.nodes[next].age.prev = there.age.prev,
        }
    }
}

/// Where an extent can lie (E3).
#[inline]
fn place(range: &Node, pages: u64) -> Option<u64> {
    let unit = range.page.next_multiple_of(UNIT_PAGES);
    let straddles = pages < UNIT_PAGES && range.page < unit && range.page + pages > unit;
    let page = if pages.is_multiple_of(UNIT_PAGES) || straddles { unit } else { range.page };
    (page + pages <= range.end()).then_some(page)
}

fn is_free(state: State) -> bool {
    matches!(state, State::Reclaimed | State::Retained)
}
