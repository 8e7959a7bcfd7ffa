//! Keys in order. A scan of several leaves is no snapshot: it returns each key that is there all
//! the time once, others perhaps.

use crate::layout::{Pair, bits, leaf_slot};
use crate::node::Leaf;
use crate::sorted::Low;
use crate::store::{Store, StoreError, load};
use crate::tree::Tree;

/// Key and value.
pub type Entry = (Vec<u8>, Vec<u8>);

impl<S: Store> Tree<S> {
    /// Appends a leaf's pairs from `from` on, and returns where the next leaf begins.
    pub fn scan_leaf(&self, from: &[u8], values: bool, out: &mut Vec<Entry>) -> Result<Option<Box<[u8]>>, StoreError> {
        loop {
            let top = self.top.load();
            let place = top.dirs.place(from);
            let dir = &top.dirs.items()[place];
            let view = dir.view();
            let Some(leaves) = view.as_ref() else {
                dir.read(&self.store, &top.count)?;
                continue;
            };
            let place_of_leaf = leaves.place(from);
            let next = leaves.items().get(place_of_leaf + 1).map(|leaf| leaf.low());
            let next = next.or_else(|| top.dirs.items().get(place + 1).map(|dir| dir.low()));
            if self.scan_range(&leaves.items()[place_of_leaf], from, next, values, out)? {
                return Ok(next.map(Into::into));
            }
        }
    }

    /// Appends a leaf's pairs from `from` on and before `next`. Since the snapshot that has `next`,
    /// the leaf may have got the range of an empty one behind it, and pairs there: they come next.
    /// `false`: the leaf has changed.
    fn scan_range(
        &self,
        leaf: &Leaf,
        from: &[u8],
        next: Option<&[u8]>,
        values: bool,
        out: &mut Vec<Entry>,
    ) -> Result<bool, StoreError> {
        let Some(version) = leaf.latch.version() else { return Ok(false) };
        let mut found = Vec::new();
        let read = self.read_leaf(leaf, values, || leaf.latch.is_same(version), &mut found);
        if !leaf.latch.is_same(version) {
            return Ok(false);
        }
        read?;
        found.retain(|(key, _)| &key[..] >= from && next.is_none_or(|next| &key[..] < next));
        found.sort_unstable();
        out.append(&mut found);
        Ok(true)
    }

    fn read_leaf(
        &self,
        leaf: &Leaf,
        values: bool,
        is_same: impl Fn() -> bool,
        out: &mut Vec<Entry>,
    ) -> Result<(), StoreError> {
        for i in bits(leaf.prints.valid()) {
            let pair = Pair::load(&self.store, load(&self.store, leaf_slot(leaf.at, i))?)?;
            // Lengths may be another object's.
            if !is_same() {
                return Ok(());
            }
            let mut entry = Entry::default();
            pair.read_key(&self.store, &mut entry.0)?;
            if values {
                pair.read_value(&self.store, &mut entry.1)?;
            }
            out.push(entry);
        }
        Ok(())
    }

    /// From `from` on.
    pub fn range(&self, from: &[u8]) -> Range<'_, S> {
        Range { tree: self, next: Some(from.into()), entries: Vec::new().into_iter() }
    }
}

pub struct Range<'a, S: Store> {
    tree: &'a Tree<S>,
    next: Option<Box<[u8]>>,
    entries: std::vec::IntoIter<Entry>,
}

impl<S: Store> Iterator for Range<'_, S> {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(Ok(entry));
            }
            let from = self.next.take()?;
            let mut entries = Vec::new();
            match self.tree.scan_leaf(&from, true, &mut entries) {
                Ok(next) => self.next = next,
                Err(error) => return Some(Err(error)),
            }
            self.entries = entries.into_iter();
        }
    }
}

#[cfg(test)]
mod tests;
