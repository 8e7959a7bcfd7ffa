//! A sequential fit whose free blocks form a tree, as in SunOS 4.1.3 (Stephenson, "Fast Fits", SOSP
//! 1983).
//!
//! Free blocks are a Cartesian tree: by address from left to right, by size from the root down.
//! *Leftmost fit* uses the lowest sufficient block. A block's first two words are left and right
//! son (32 bits each, in units of 16 bytes), and length.
//!
//! **Unsafe.** Trusts the argument of [`Store::put`].

use super::Store;
use super::arena::Arena;
use craton_base::PAGE_SIZE;

const UNIT: usize = 16;
/// Beyond the last place.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    Root,
    Left(u32),
    Right(u32),
}

#[derive(Debug)]
pub struct FastFits {
    arena: Arena,
    root: u32,
    /// In allocated pages.
    free: usize,
    keeps: bool,
}

impl FastFits {
    /// On at most 64 GiB.
    pub fn new(arena: Arena) -> Self {
        assert!(arena.pages() * PAGE_SIZE / UNIT < NIL as usize, "the arena is longer than 64 GiB");
        Self { arena, root: NIL, free: 0, keeps: false }
    }

    pub fn keeping(arena: Arena) -> Self {
        Self { keeps: true, ..Self::new(arena) }
    }

    #[inline]
    fn sons(&self, node: u32) -> (u32, u32) {
        let word = self.arena.word(node as usize * UNIT);
        (word as u32, (word >> 32) as u32)
    }

    #[inline]
    fn len(&self, node: u32) -> u32 {
        self.arena.word(node as usize * UNIT + 8) as u32
    }

    fn set_sons(&mut self, node: u32, left: u32, right: u32) {
        self.arena.set_word(node as usize * UNIT, left as usize | (right as usize) << 32);
    }

    fn follow(&self, edge: Edge) -> u32 {
        match edge {
            Edge::Root => self.root,
            Edge::Left(node) => self.sons(node).0,
            Edge::Right(node) => self.sons(node).1,
        }
    }

    fn set(&mut self, edge: Edge, son: u32) {
        match edge {
            Edge::Root => self.root = son,
            Edge::Left(node) => self.set_sons(node, son, self.sons(node).1),
            Edge::Right(node) => self.set_sons(node, self.sons(node).0, son),
        }
    }

    fn insert(&mut self, block: u32, len: u32) {
        self.arena.set_word(block as usize * UNIT + 8, len as usize);
        let mut edge = Edge::Root;
        let mut at = self.root;
        while at != NIL && self.len(at) >= len {
            edge = if block < at { Edge::Left(at) } else { Edge::Right(at) };
            at = self.follow(edge);
        }
        self.set(edge, block);
        self.set_sons(block, NIL, NIL);
        // Its address splits the subtree.
        let (mut left, mut right) = (Edge::Left(block), Edge::Right(block));
        while at != NIL {
            if at < block {
                self.set(left, at);
                left = Edge::Right(at);
                at = self.sons(at).1;
            } else {
                self.set(right, at);
                right = Edge::Left(at);
                at = self.sons(at).0;
            }
        }
        self.set(left, NIL);
        self.set(right, NIL);
        self.free += len as usize * UNIT;
    }

    /// Its sons' trees become one.
    fn remove(&mut self, mut edge: Edge) {
        let block = self.follow(edge);
        self.free -= self.len(block) as usize * UNIT;
        let (mut left, mut right) = self.sons(block);
        while left != NIL && right != NIL {
            if self.len(left) >= self.len(right) {
                self.set(edge, left);
                edge = Edge::Right(left);
                left = self.sons(left).1;
            } else {
                self.set(edge, right);
                edge = Edge::Left(right);
                right = self.sons(right).0;
            }
        }
        self.set(edge, if left == NIL { right } else { left });
    }

    fn neighbours(&self, block: u32, len: u32) -> (Option<Edge>, Option<Edge>) {
        let (mut before, mut behind) = (None, None);
        let (mut edge, mut at) = (Edge::Root, self.root);
        while at != NIL {
            if at < block {
                if at + self.len(at) == block {
                    before = Some(edge);
                }
                edge = Edge::Right(at);
            } else {
                if at == block + len {
                    behind = Some(edge);
                }
                edge = Edge::Left(at);
            }
            at = self.follow(edge);
        }
        (before, behind)
    }

    fn merge(&mut self, mut block: u32, mut len: u32) {
        let (before, behind) = self.neighbours(block, len);
        if let Some(edge) = behind {
            len += self.len(block + len);
            self.remove(edge);
        }
        if before.is_some() {
            // Its edge may have changed.
            if let (Some(edge), _) = self.neighbours(block, len) {
                let first = self.follow(edge);
                len += block - first;
                block = first;
                self.remove(edge);
            }
        }
        let (start, end) = (block as usize * UNIT, (block + len) as usize * UNIT);
        let (first, last) = (start.next_multiple_of(PAGE_SIZE), end / PAGE_SIZE * PAGE_SIZE);
        if first >= last || self.keeps {
            return self.insert(block, len);
        }
        self.arena.put(first, (last - first) / PAGE_SIZE);
        for (start, end) in [(start, first), (last, end)] {
            if start < end {
                self.insert((start / UNIT) as u32, ((end - start) / UNIT) as u32);
            }
        }
    }

    #[cold]
    fn grow(&mut self, len: u32) -> Option<u32> {
        let pages = (len as usize * UNIT).div_ceil(PAGE_SIZE);
        let start = self.arena.get(pages, 1)?;
        let (block, all) = ((start / UNIT) as u32, (pages * PAGE_SIZE / UNIT) as u32);
        if all > len {
            // Less than a page, so no page is returned.
            self.merge(block + len, all - len);
        }
        Some(block)
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(NIL)
}

impl Store for FastFits {
    fn get(&mut self, bytes: usize) -> Option<*mut u8> {
        let len = units(bytes);
        let (mut edge, mut at) = (Edge::Root, self.root);
        if at == NIL || self.len(at) < len {
            at = self.grow(len)?;
            return Some(self.arena.pointer(at as usize * UNIT));
        }
        loop {
            let left = self.sons(at).0;
            if left == NIL || self.len(left) < len {
                break;
            }
            (edge, at) = (Edge::Left(at), left);
        }
        let rest = self.len(at) - len;
        self.remove(edge);
        if rest > 0 {
            self.insert(at + len, rest);
        }
        Some(self.arena.pointer(at as usize * UNIT))
    }

    unsafe fn put(&mut self, at: *mut u8, bytes: usize) {
        let block = (self.arena.offset(at) / UNIT) as u32;
        self.merge(block, units(bytes));
    }

    fn consumed(&self) -> usize {
        self.arena.consumed()
    }

    fn check(&self) -> Result<(), String> {
        let (mut stack, mut at, mut end, mut free) = (Vec::new(), self.root, 0, 0);
        loop {
            while at != NIL {
                for son in [self.sons(at).0, self.sons(at).1] {
                    if son != NIL && self.len(son) > self.len(at) {
                        return Err(format!("block {son:#x} is longer than {at:#x} above it"));
                    }
                }
                stack.push(at);
                at = self.sons(at).0;
            }
            let Some(node) = stack.pop() else { break };
            if node <= end && end > 0 {
                return Err(format!("block {node:#x} begins before {end:#x}, or touches what ends there"));
            }
            end = node + self.len(node);
            free += self.len(node) as usize * UNIT;
            at = self.sons(node).1;
        }
        if free == self.free { Ok(()) } else { Err(format!("{free} bytes are free, not {}", self.free)) }
    }
}
