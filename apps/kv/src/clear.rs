//! Deletes everything: one commit puts an empty tree in place of the old one. Small commits free
//! that from the leaves up, if need be after the next open.

use crate::layout::{
    DEAD, DIR_LOW, INDEX_SLOTS, LEAF_LOW, LIVE, Prints, bits, dir_leaves, dir_slot, free_low, index_slot, leaf_slot,
};
use crate::log::Record;
use crate::store::{Change, MOST_CHANGES, Store, StoreError, load};
use crate::tree::{Empty, Tree};
use std::sync::{Arc, PoisonError};

impl<S: Store> Tree<S> {
    /// [`free_dead`](Self::free_dead) then frees the memory.
    pub fn clear(&self) -> Result<(), StoreError> {
        let _clearing = self.clearing.lock().unwrap_or_else(PoisonError::into_inner);
        self.free_old()?;
        let empty = Empty::new(&self.store)?;
        let old = {
            let mut index = self.index();
            let old = self.top.load_full();
            let dead = Change::Set { slot: self.root + DEAD, value: load(&self.store, self.root + LIVE)? };
            let (changes, mut top, new_index) = empty.publish(self.root + LIVE);
            self.store.commit([dead].into_iter().chain(changes))?;
            top.epoch = old.epoch + 1;
            self.record(Record::Clear, &top);
            self.top.store(Arc::new(top));
            *index = new_index;
            old
        };
        for dir in old.dirs.items() {
            // Not held while waiting: a leaf's holder may wait for it.
            dir.lock().is_retired = true;
            if let Some(leaves) = dir.view().as_ref() {
                leaves.items().iter().filter_map(|leaf| leaf.latch.lock()).for_each(|locked| locked.retire());
            }
        }
        Ok(())
    }

    pub fn free_dead(&self) -> Result<(), StoreError> {
        let _clearing = self.clearing.lock().unwrap_or_else(PoisonError::into_inner);
        self.free_old()
    }

    fn free_old(&self) -> Result<(), StoreError> {
        let store = &self.store;
        let mut slots = vec![self.root + DEAD];
        loop {
            let block = load(store, slots[slots.len() - 1])?;
            if block == 0 {
                break;
            }
            slots.push(block + 8);
        }
        slots.pop();
        // The last block first: the rest stays within reach.
        for slot in slots.into_iter().rev() {
            let block = load(store, slot)?;
            for dir_at in (0..INDEX_SLOTS).map(|i| index_slot(block, i)) {
                let dir = load(store, dir_at)?;
                if dir == 0 {
                    continue;
                }
                for leaf_at in dir_leaves(store, dir)?.into_iter().map(|i| dir_slot(dir, i)) {
                    // 0: freed before a crash.
                    if load(store, leaf_at)? != 0 {
                        self.free_leaf(leaf_at)?;
                    }
                }
                let low = free_low(store, dir + DIR_LOW)?;
                store.commit(low.into_iter().chain([Change::Free { slot: dir_at }]))?;
            }
            store.commit([Change::Free { slot }])?;
        }
        Ok(())
    }

    fn free_leaf(&self, slot: u64) -> Result<(), StoreError> {
        let store = &self.store;
        let leaf = load(store, slot)?;
        // Pairs freed before a crash have slots of 0.
        let pairs: Vec<u64> = bits(Prints::read(store, leaf)?.valid()).map(|i| leaf_slot(leaf, i)).collect();
        for some in pairs.chunks(MOST_CHANGES) {
            store.commit(some.iter().map(|slot| Change::Free { slot: *slot }))?;
        }
        let low = free_low(store, leaf + LEAF_LOW)?;
        store.commit(low.into_iter().chain([Change::Free { slot }]))
    }
}
