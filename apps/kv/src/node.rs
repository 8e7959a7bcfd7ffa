//! Handles in DRAM of leaves and directories. A directory's leaves are read when first requested,
//! so that opening a tree reads one line for each directory: some 1,200 for 10 M keys.
//!
//! **Threads.** Locks in this order: a leaf's latch, a directory's lock, the tree's. A view is
//! swapped under its directory's lock.

use crate::latch::Latch;
use crate::layout::{DIR_LOW, LEAF_LOW, LEAF_TAG, Prints, dir_leaves, dir_slot, read_low};
use crate::sorted::{Low, Sorted};
use crate::store::{Store, StoreError, load};
use arc_swap::ArcSwapOption;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Leaf {
    pub at: u64,
    low: Arc<[u8]>,
    pub latch: Latch,
    pub prints: Prints,
}

impl Leaf {
    pub fn new(at: u64, low: Arc<[u8]>, prints: Prints) -> Arc<Self> {
        Arc::new(Self { at, low, latch: Latch::default(), prints })
    }

    /// With some of its slots.
    pub fn renewed(&self, stay: u64) -> Arc<Self> {
        Self::new(self.at, Arc::clone(&self.low), self.prints.kept(stay))
    }
}

impl Low for Leaf {
    fn low(&self) -> &[u8] {
        &self.low
    }
}

pub struct Dir {
    pub at: u64,
    /// In the index.
    pub slot: u64,
    pub low: Arc<[u8]>,
    state: Mutex<DirState>,
    view: ArcSwapOption<Sorted<Leaf>>,
}

#[derive(Default)]
pub struct DirState {
    /// Its range belongs to other directories: search again.
    pub is_retired: bool,
}

impl Low for Dir {
    fn low(&self) -> &[u8] {
        &self.low
    }
}

impl Dir {
    pub fn new(at: u64, slot: u64, low: Arc<[u8]>, leaves: Option<Sorted<Leaf>>) -> Arc<Self> {
        let view = ArcSwapOption::new(leaves.map(Arc::new));
        Arc::new(Self { at, slot, low, state: Mutex::default(), view })
    }

    pub fn lock(&self) -> MutexGuard<'_, DirState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: not read yet.
    pub fn view(&self) -> arc_swap::Guard<Option<Arc<Sorted<Leaf>>>> {
        self.view.load()
    }

    pub fn set_view(&self, leaves: Sorted<Leaf>) {
        self.view.store(Some(Arc::new(leaves)));
    }

    /// Once, with a count of pairs.
    #[cold]
    pub fn read<S: Store>(&self, store: &S, count: &AtomicI64) -> Result<(), StoreError> {
        let state = self.lock();
        if state.is_retired || self.view.load().is_some() {
            return Ok(());
        }
        let mut leaves = Vec::new();
        let mut pairs = 0;
        for i in dir_leaves(store, self.at)? {
            let at = load(store, dir_slot(self.at, i))?;
            if load(store, at)? != LEAF_TAG {
                return Err(StoreError::Damaged(at));
            }
            let prints = Prints::read(store, at)?;
            pairs += i64::from(prints.valid().count_ones());
            leaves.push(Leaf::new(at, read_low(store, at + LEAF_LOW)?.into(), prints));
        }
        leaves.sort_unstable_by(|a, b| a.low().cmp(b.low()));
        // The first leaf serves the smallest keys.
        let is_first = leaves.first().is_some_and(|leaf| leaf.low() == &self.low[..]);
        if !is_first || leaves.windows(2).any(|two| two[0].low() == two[1].low()) {
            return Err(StoreError::Damaged(self.at));
        }
        count.fetch_add(pairs, Ordering::Relaxed);
        self.set_view(Sorted::new(leaves));
        Ok(())
    }

    pub fn found<S: Store>(store: &S, at: u64, slot: u64) -> Result<Arc<Self>, StoreError> {
        Ok(Self::new(at, slot, read_low(store, at + DIR_LOW)?.into(), None))
    }
}
