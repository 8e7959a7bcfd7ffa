//! Full leaves and full directories split; empty ones are dropped. Each change is one commit. New
//! views are swapped in before old handles are retired, so that a search that meets a retired
//! handle finds its successors.

use crate::latch::Locked;
use crate::layout::{
    DIR_BYTES, DIR_LOW, DIR_SLOTS, INDEX_BYTES, INDEX_SLOTS, LEAF_BYTES, LEAF_LOW, Pair, Prints, ROWS, SLOTS,
    dir_leaves, dir_slot, fingerprint, free_low, index_slot, leaf_slot, row_word, write_dir, write_index, write_leaf,
};
use crate::node::{Dir, DirState, Leaf};
use crate::sorted::{Low, Sorted};
use crate::store::{Change, Reservation, Store, StoreError, load};
use crate::tree::{Top, Tree};
use std::sync::Arc;

struct Home<'a> {
    dir: &'a Arc<Dir>,
    state: &'a mut DirState,
    leaves: &'a Sorted<Leaf>,
    place: usize,
}

/// `Again` after the split of a full directory.
enum Next {
    Done,
    Again,
}

impl<S: Store> Tree<S> {
    #[cold]
    pub(crate) fn split(&self, leaf: &Arc<Leaf>, locked: Locked<'_>) -> Result<(), StoreError> {
        let mut pairs = Vec::with_capacity(SLOTS);
        for i in 0..SLOTS {
            let at = load(&self.store, leaf_slot(leaf.at, i))?;
            let mut key = Vec::new();
            Pair::load(&self.store, at)?.read_key(&self.store, &mut key)?;
            pairs.push((key, i, at));
        }
        pairs.sort_unstable();
        let (lower, upper) = pairs.split_at(SLOTS / 2);
        let low = separator(&lower[lower.len() - 1].0, &upper[0].0);
        let stay = lower.iter().fold(0, |mask, (_, i, _)| mask | 1 << i);
        let moved: Vec<_> = upper.iter().map(|(key, _, at)| (fingerprint(key), *at)).collect();
        let mut locked = Some(locked);
        self.at_home(leaf, |home| {
            let Some(j) = free_place(&self.store, home.dir.at)? else {
                self.split_dir(&home)?;
                home.state.is_retired = true;
                return Ok(Next::Again);
            };
            let right = self.store.reserve(LEAF_BYTES)?;
            let at = right.at();
            let new_low = match write_leaf(&self.store, at, &low, &moved) {
                Ok(new_low) => new_low,
                Err(error) => {
                    self.store.cancel(right);
                    return Err(error);
                }
            };
            let word = home.dir.at + 8 * (j / 64);
            let listed = load(&self.store, word)? | 1 << (j % 64);
            let attach = Change::Attach { slot: dir_slot(home.dir.at, j), object: right };
            let listed = Change::Set { slot: word, value: listed };
            let rows = (0..ROWS)
                .map(|row| Change::Set { slot: row_word(leaf.at, row), value: leaf.prints.row_with(row, stay) });
            let changes = [attach].into_iter().chain(new_low.attach(at + LEAF_LOW)).chain([listed]).chain(rows);
            self.store.commit(changes)?;
            let prints = Prints::of(moved.iter().map(|(print, _)| *print));
            let two = [leaf.renewed(stay), Leaf::new(at, low.clone().into(), prints)];
            home.dir.set_view(home.leaves.with(home.place, two));
            if let Some(locked) = locked.take() {
                locked.retire();
            }
            Ok(Next::Done)
        })
    }

    fn split_dir(&self, home: &Home<'_>) -> Result<(), StoreError> {
        let Home { dir, leaves, .. } = home;
        let mut index = self.index();
        let top = self.top.load_full();
        // The tree was cleared.
        let Some(place) = top.dirs.place_of(dir) else { return Ok(()) };
        let (lower, upper) = leaves.items().split_at(leaves.items().len() / 2);
        let moved: Vec<u64> = upper.iter().map(|leaf| leaf.at).collect();
        let mut stay = [0; 2];
        for i in dir_leaves(&self.store, dir.at)? {
            if !moved.contains(&load(&self.store, dir_slot(dir.at, i))?) {
                stay[i as usize / 64] |= 1 << (i % 64);
            }
        }
        let low = upper[0].low();
        let object = self.store.reserve(DIR_BYTES)?;
        let at = object.at();
        let new_low = match write_dir(&self.store, at, low, &moved) {
            Ok(new_low) => new_low,
            Err(error) => {
                self.store.cancel(object);
                return Err(error);
            }
        };
        let mut block = None;
        let slot = match index.free.pop() {
            Some(slot) => slot,
            None => match self.store.reserve(INDEX_BYTES) {
                Ok(new) => {
                    write_index(&self.store, new.at());
                    let slot = index_slot(new.at(), 0);
                    block = Some(new);
                    slot
                }
                Err(error) => {
                    new_low.cancel(&self.store);
                    self.store.cancel(object);
                    return Err(error);
                }
            },
        };
        let new_block = block.as_ref().map(Reservation::at);
        let link = block.map(|object| Change::Attach { slot: index.next, object });
        let bits = (0..2).map(|i| Change::Set { slot: dir.at + 8 * i, value: stay[i as usize] });
        let attach = Change::Attach { slot, object };
        let changes = link.into_iter().chain([attach]).chain(new_low.attach(at + DIR_LOW)).chain(bits);
        if let Err(error) = self.store.commit(changes) {
            if new_block.is_none() {
                index.free.push(slot);
            }
            return Err(error);
        }
        if let Some(block) = new_block {
            index.next = block + 8;
            index.free.extend((1..INDEX_SLOTS).rev().map(|i| index_slot(block, i)));
        }
        let two = [
            Dir::new(dir.at, dir.slot, Arc::clone(&dir.low), Some(Sorted::new(lower.to_vec()))),
            Dir::new(at, slot, low.into(), Some(Sorted::new(upper.to_vec()))),
        ];
        self.top.store(Arc::new(Top {
            dirs: top.dirs.with(place, two),
            count: Arc::clone(&top.count),
            epoch: top.epoch,
        }));
        Ok(())
    }

    /// The leaf before gets the range. A directory's first leaf goes last, with the directory.
    #[cold]
    pub(crate) fn drop_leaf(&self, leaf: &Arc<Leaf>, locked: Locked<'_>) -> Result<(), StoreError> {
        let mut locked = Some(locked);
        self.at_home(leaf, |home| {
            let leaves = home.leaves.items();
            if home.place == 0 {
                if leaves.len() == 1
                    && let Some(locked) = locked.take()
                {
                    self.drop_dir(home.dir, home.state, leaf, locked)?;
                }
                return Ok(Next::Done);
            }
            let changes = self.unlist(home.dir, leaf)?;
            self.store.commit(changes)?;
            home.dir.set_view(home.leaves.with(home.place, []));
            if let Some(locked) = locked.take() {
                locked.retire();
            }
            // Only try: the holder may wait for this directory.
            let first = &leaves[0];
            if leaves.len() == 2
                && let Some(locked) = first.latch.lock_now()
                && first.prints.valid() == 0
            {
                self.drop_dir(home.dir, home.state, first, locked)?;
            }
            Ok(Next::Done)
        })
    }

    /// Unless it is the first.
    fn drop_dir(
        &self,
        dir: &Arc<Dir>,
        state: &mut DirState,
        leaf: &Leaf,
        locked: Locked<'_>,
    ) -> Result<(), StoreError> {
        let mut index = self.index();
        let top = self.top.load_full();
        let Some(place) = top.dirs.place_of(dir).filter(|place| *place > 0) else { return Ok(()) };
        let mut changes = self.unlist(dir, leaf)?;
        changes.extend(free_low(&self.store, dir.at + DIR_LOW)?);
        changes.push(Change::Free { slot: dir.slot });
        self.store.commit(changes)?;
        index.free.push(dir.slot);
        self.top.store(Arc::new(Top {
            dirs: top.dirs.with(place, []),
            count: Arc::clone(&top.count),
            epoch: top.epoch,
        }));
        state.is_retired = true;
        locked.retire();
        Ok(())
    }

    fn unlist(&self, dir: &Dir, leaf: &Leaf) -> Result<Vec<Change<S::Reserved>>, StoreError> {
        for i in dir_leaves(&self.store, dir.at)? {
            let slot = dir_slot(dir.at, i);
            if load(&self.store, slot)? == leaf.at {
                let word = dir.at + 8 * (i / 64);
                let value = load(&self.store, word)? & !(1 << (i % 64));
                let mut changes = Vec::from_iter(free_low(&self.store, leaf.at + LEAF_LOW)?);
                changes.extend([Change::Set { slot: word, value }, Change::Free { slot }]);
                return Ok(changes);
            }
        }
        Err(StoreError::Damaged(dir.at))
    }

    /// Under the directory's lock, unless the tree was cleared: then the leaf will be retired.
    fn at_home(
        &self,
        leaf: &Arc<Leaf>,
        mut f: impl FnMut(Home<'_>) -> Result<Next, StoreError>,
    ) -> Result<(), StoreError> {
        loop {
            let top = self.top.load();
            let dir = top.dirs.child(leaf.low());
            let mut state = dir.lock();
            if state.is_retired {
                continue;
            }
            let view = dir.view();
            let Some(leaves) = view.as_ref() else { return Ok(()) };
            let Some(place) = leaves.place_of(leaf) else { return Ok(()) };
            match f(Home { dir, state: &mut state, leaves, place })? {
                Next::Done => return Ok(()),
                Next::Again => {}
            }
        }
    }
}

fn free_place<S: Store>(store: &S, dir: u64) -> Result<Option<u64>, StoreError> {
    for word in 0..DIR_SLOTS / 64 {
        let bits = load(store, dir + 8 * word)?;
        if bits != u64::MAX {
            return Ok(Some(64 * word + u64::from(bits.trailing_ones())));
        }
    }
    Ok(None)
}

/// The shortest key in `left < key <= right`.
fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    right[..right.len().min(common + 1)].to_vec()
}
