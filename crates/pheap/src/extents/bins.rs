//! Free ranges by size, for best fit: a list for each size up to 512, and an ordered map above.
//! Ranges with memory go first.

use super::nodes::{Links, NONE, Nodes};
use std::collections::BTreeMap;

pub(super) const LISTED: u64 = 512;
const WORDS: usize = LISTED as usize / 64 + 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// By pages.
    Pages,
    /// By the number of aligned units in them.
    Units,
}

pub(super) struct Bins {
    by: By,
    used: [u64; WORDS],
    heads: Vec<Links>,
    large: BTreeMap<(u64, u64), u32>,
}

impl Bins {
    pub(super) fn new(by: By) -> Self {
        let empty = Links { prev: NONE, next: NONE };
        Self { by, used: [0; WORDS], heads: vec![empty; LISTED as usize + 1], large: BTreeMap::new() }
    }

    #[inline]
    pub(super) fn insert(&mut self, nodes: &mut Nodes, node: u32, size: u64, is_backed: bool) {
        if size > LISTED {
            self.large.insert((size, nodes[node].page), node);
            return;
        }
        // A head's `next` is the first node, its `prev` the last.
        let head = &mut self.heads[size as usize];
        let links = match is_backed {
            true => Links { prev: NONE, next: head.next },
            false => Links { prev: head.prev, next: NONE },
        };
        match links.prev {
            NONE => head.next = node,
            prev => nodes[prev].links(self.by).next = node,
        }
        match links.next {
            NONE => head.prev = node,
            next => nodes[next].links(self.by).prev = node,
        }
        *nodes[node].links(self.by) = links;
        self.used[size as usize / 64] |= 1 << (size % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, nodes: &mut Nodes, node: u32, size: u64) {
        if size > LISTED {
            self.large.remove(&(size, nodes[node].page));
            return;
        }
        let links = *nodes[node].links(self.by);
        let head = &mut self.heads[size as usize];
        match links.prev {
            NONE => head.next = links.next,
            prev => nodes[prev].links(self.by).next = links.next,
        }
        match links.next {
            NONE => head.prev = links.prev,
            next => nodes[next].links(self.by).prev = links.prev,
        }
        if head.next == NONE {
            self.used[size as usize / 64] &= !(1 << (size % 64));
        }
    }

    /// Best fit that `fits` accepts, among `tries` of each size.
    #[inline]
    pub(super) fn find(&self, nodes: &Nodes, size: u64, tries: usize, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let mut from = size;
        while let Some(there) = self.next_used(from) {
            let mut node = self.heads[there as usize].next;
            for _ in 0..tries {
                if node == NONE {
                    break;
                }
                if fits(node) {
                    return Some(node);
                }
                node = nodes[node].links_of(self.by).next;
            }
            from = there + 1;
        }
        let mut large = self.large.range((size.max(LISTED + 1), 0)..);
        large.by_ref().map(|(_, node)| *node).find(|node| fits(*node))
    }

    #[inline]
    fn next_used(&self, from: u64) -> Option<u64> {
        if from > LISTED {
            return None;
        }
        let first = from as usize / 64;
        let word = self.used[first] & u64::MAX << (from % 64);
        if word != 0 {
            return Some(first as u64 * 64 + u64::from(word.trailing_zeros()));
        }
        (first + 1..WORDS)
            .find(|word| self.used[*word] != 0)
            .map(|word| word as u64 * 64 + u64::from(self.used[word].trailing_zeros()))
    }
}
