//! Checks a tree at rest: KV1 to KV3.

use crate::layout::{
    DEAD, DIR_LOW, INDEX_SLOTS, LEAF_LOW, LIVE, Pair, Prints, bits, dir_leaves, dir_slot, fingerprint, index_slot,
    leaf_slot,
};
use crate::node::Leaf;
use crate::sorted::Low;
use crate::store::{Store, StoreError, load};
use crate::tree::Tree;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    pub pairs: u64,
    pub leaves: u64,
    pub dirs: u64,
    /// That the tree reaches.
    pub objects: u64,
}

impl<S: Store> Tree<S> {
    /// No other thread may write. An error names the broken node.
    pub fn check(&self) -> Result<Census, StoreError> {
        let store = &self.store;
        let top = self.read_all()?;
        let mut census = Census { objects: 1, ..Census::default() };
        let mut listed = 0;
        let mut block = load(store, self.root + LIVE)?;
        while block != 0 {
            census.objects += 1;
            for i in 0..INDEX_SLOTS {
                listed += u64::from(load(store, index_slot(block, i))? != 0);
            }
            block = load(store, block + 8)?;
        }
        let dirs = top.dirs.items();
        for (i, dir) in dirs.iter().enumerate() {
            let above_dir = dirs.get(i + 1).map(|next| next.low());
            census.dirs += 1;
            census.objects += 1 + u64::from(load(store, dir.at + DIR_LOW + 8)? != 0);
            let view = dir.view();
            let leaves = view.as_ref().map_or(&[][..], |leaves| leaves.items());
            let mut at: Vec<u64> = Vec::new();
            for i in dir_leaves(store, dir.at)? {
                at.push(load(store, dir_slot(dir.at, i))?);
            }
            if at.len() != leaves.len() || leaves.iter().any(|leaf| !at.contains(&leaf.at)) || dir.slot == 0 {
                return Err(StoreError::Damaged(dir.at));
            }
            for (j, leaf) in leaves.iter().enumerate() {
                let above = leaves.get(j + 1).map(|next| next.low()).or(above_dir);
                census.leaves += 1;
                census.objects += 1 + u64::from(load(store, leaf.at + LEAF_LOW + 8)? != 0);
                let pairs = self.check_leaf(leaf, above)?;
                census.pairs += pairs;
                census.objects += pairs;
            }
        }
        let counted = top.count.load(std::sync::atomic::Ordering::Relaxed);
        if listed != census.dirs || counted != census.pairs as i64 || load(store, self.root + DEAD)? != 0 {
            return Err(StoreError::Damaged(self.root));
        }
        Ok(census)
    }

    fn check_leaf(&self, leaf: &Leaf, above: Option<&[u8]>) -> Result<u64, StoreError> {
        let (store, at, low) = (&self.store, leaf.at, leaf.low());
        let there = Prints::read(store, at)?;
        if there.valid() != leaf.prints.valid() {
            return Err(StoreError::Damaged(at));
        }
        let mut keys = Vec::new();
        for i in bits(there.valid()) {
            let pair = Pair::load(store, load(store, leaf_slot(at, i))?)?;
            let mut key = Vec::new();
            pair.read_key(store, &mut key)?;
            let print = fingerprint(&key);
            let is_printed = (there.matches(print) & leaf.prints.matches(print)) >> i & 1 == 1;
            if !is_printed || &key[..] < low || above.is_some_and(|above| &key[..] >= above) {
                return Err(StoreError::Damaged(leaf_slot(at, i)));
            }
            keys.push(key);
        }
        keys.sort_unstable();
        if keys.windows(2).any(|two| two[0] == two[1]) {
            return Err(StoreError::Damaged(at));
        }
        Ok(keys.len() as u64)
    }
}
