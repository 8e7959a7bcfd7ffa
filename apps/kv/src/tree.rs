//! The tree: find, read, insert, replace, delete.
//!
//! **Threads.** Readers find the leaf through snapshots, and compare the latch's version. Writers
//! hold the latch from the search to the commit.
//!
//! **Cost.** A read touches two inner arrays, two lines of the leaf in DRAM, one of its slots and
//! the pair.

use crate::latch::Locked;
use crate::layout::{
    DEAD, DIR_BYTES, FULL, GENERATION, INDEX_BYTES, INDEX_SLOTS, INDEX_TAG, LEAF_BYTES, LIVE, MAGIC, Pair, Prints,
    ROOT_BYTES, ROW, VERSION, dir_slot, find, fingerprint, index_slot, leaf_slot, row_word, write_dir, write_index,
    write_leaf,
};
use crate::log::{Log, Record};
use crate::node::{Dir, Leaf};
use crate::sorted::{Low, Sorted};
use crate::store::{Change, Reservation, Store, StoreError, load, reserve_all};
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Tree<S: Store> {
    pub(crate) store: S,
    pub(crate) root: u64,
    pub(crate) top: ArcSwap<Top>,
    index: Mutex<Index>,
    /// While a cleared tree is freed.
    pub(crate) clearing: Mutex<()>,
    /// On disks.
    pub(crate) log: Option<Arc<Log>>,
}

pub(crate) struct Top {
    pub dirs: Sorted<Dir>,
    /// Of directories that have been read.
    pub count: Arc<AtomicI64>,
    /// Clearings since `open`.
    pub epoch: u64,
}

#[derive(Default)]
pub(crate) struct Index {
    pub free: Vec<u64>,
    /// The next block's slot.
    pub next: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    Always,
    Absent,
    Present,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub existed: bool,
    pub changed: bool,
}

impl<S: Store> Tree<S> {
    /// Makes an empty tree if the slot is 0.
    pub fn open(store: S, slot: u64) -> Result<Self, StoreError> {
        let mut root = load(&store, slot)?;
        let (top, index) = if root == 0 {
            let made = new_root(&store, slot)?;
            root = made.0;
            (made.1, made.2)
        } else {
            if load(&store, root)? != MAGIC || load(&store, root + 8)? != VERSION {
                return Err(StoreError::Damaged(root));
            }
            read_index(&store, root)?
        };
        let tree = Self {
            store,
            root,
            top: ArcSwap::from_pointee(top),
            index: Mutex::new(index),
            clearing: Mutex::default(),
            log: None,
        };
        if load(&tree.store, tree.root + DEAD)? != 0 {
            tree.free_dead()?;
        }
        Ok(tree)
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    pub fn set_log(&mut self, log: Arc<Log>) {
        self.log = Some(log);
    }

    /// Of the log that begins here.
    pub fn generation(&self) -> Result<u64, StoreError> {
        load(&self.store, self.root + GENERATION)
    }

    /// No other thread writes meanwhile.
    pub fn begin_generation(&self, generation: u64) -> Result<(), StoreError> {
        self.store.commit([Change::Set { slot: self.root + GENERATION, value: generation }])?;
        if let Some(log) = &self.log {
            log.begin(generation, self.top.load().epoch);
        }
        Ok(())
    }

    /// The change's leaf is locked.
    #[inline]
    pub(crate) fn record(&self, record: Record<'_>, top: &Top) {
        if let Some(log) = &self.log {
            log.append(record, top.epoch);
        }
    }

    pub fn into_store(self) -> S {
        self.store
    }

    /// Appends to `out`.
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, StoreError> {
        self.read(key, |pair, out| pair.read_value(&self.store, out), out)
    }

    /// Appends the value behind what `head` makes of its length.
    pub fn get_with_head(
        &self,
        key: &[u8],
        head: impl Fn(usize, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> Result<bool, StoreError> {
        let write = |pair: &Pair, out: &mut Vec<u8>| {
            head(pair.value_len, out);
            pair.read_value(&self.store, out)
        };
        self.read(key, write, out)
    }

    pub fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.read(key, |_, _| Ok(()), &mut Vec::new())
    }

    pub fn value_len(&self, key: &[u8]) -> Result<Option<usize>, StoreError> {
        let mut out = Vec::new();
        let write = |pair: &Pair, out: &mut Vec<u8>| {
            out.extend_from_slice(&pair.value_len.to_le_bytes());
            Ok(())
        };
        let found = self.read(key, write, &mut out)?;
        Ok(out.first_chunk().filter(|_| found).map(|bytes| usize::from_le_bytes(*bytes)))
    }

    fn read(
        &self,
        key: &[u8],
        write: impl Fn(&Pair, &mut Vec<u8>) -> Result<(), StoreError>,
        out: &mut Vec<u8>,
    ) -> Result<bool, StoreError> {
        let print = fingerprint(key);
        let mark = out.len();
        self.at_leaf(key, |leaf, _| {
            let Some(version) = leaf.latch.version() else { return Ok(None) };
            out.truncate(mark);
            let read = (|| {
                let Some((_, pair)) = find(&self.store, leaf.at, &leaf.prints, key, print)? else { return Ok(false) };
                // The pair may be another's.
                if leaf.latch.is_same(version) {
                    write(&pair, out)?;
                    return Ok(true);
                }
                Ok(false)
            })();
            if leaf.latch.is_same(version) { read.map(Some) } else { Ok(None) }
        })
    }

    /// Appends the old value to `old`.
    pub fn put(
        &self,
        key: &[u8],
        value: &[u8],
        when: When,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<Outcome, StoreError> {
        let print = fingerprint(key);
        // Before the latch, which readers wait for; but not a pair that may be refused.
        let mut pair = match when {
            When::Always => Some(Pair::reserve(&self.store, key, value)?),
            When::Absent | When::Present => None,
        };
        let done = self.at_locked(key, |leaf, locked, top| {
            let found = find(&self.store, leaf.at, &leaf.prints, key, print)?;
            if let (Some((_, pair)), Some(old)) = (&found, &mut old) {
                pair.read_value(&self.store, old)?;
            }
            let existed = found.is_some();
            let refused = match when {
                When::Always => false,
                When::Absent => existed,
                When::Present => !existed,
            };
            if refused {
                return Ok(Step::Done(Outcome { existed, changed: false }));
            }
            let valid = leaf.prints.valid();
            if !existed && valid == FULL {
                return Ok(Step::Split(locked));
            }
            let object = match pair.take() {
                Some(object) => object,
                None => Pair::reserve(&self.store, key, value)?,
            };
            match found {
                Some((i, _)) => self.store.commit([Change::Replace { slot: leaf_slot(leaf.at, i), object }])?,
                None => {
                    self.insert(leaf, valid, print, object)?;
                    top.count.fetch_add(1, Ordering::Relaxed);
                }
            }
            self.record(Record::Set { key, value }, top);
            Ok(Step::Done(Outcome { existed, changed: true }))
        });
        if let Some(object) = pair {
            self.store.cancel(object);
        }
        done
    }

    fn insert(&self, leaf: &Leaf, valid: u64, print: u8, object: S::Reserved) -> Result<(), StoreError> {
        let i = valid.trailing_ones() as usize;
        let (word, value) = (row_word(leaf.at, i / ROW), leaf.prints.row_and(i, print));
        self.store.commit([Change::Link { slot: leaf_slot(leaf.at, i), object, word, value }])?;
        leaf.prints.insert(i, print);
        Ok(())
    }

    /// Replaces a short value, under the leaf's lock. An error of `next` changes nothing.
    pub fn update<E>(
        &self,
        key: &[u8],
        mut next: impl FnMut(Option<&[u8]>) -> Result<Vec<u8>, E>,
    ) -> Result<Result<(), E>, StoreError> {
        let print = fingerprint(key);
        self.at_locked(key, |leaf, locked, top| {
            let found = find(&self.store, leaf.at, &leaf.prints, key, print)?;
            let mut value = Vec::new();
            if let Some((_, pair)) = &found {
                pair.read_value(&self.store, &mut value)?;
            }
            let valid = leaf.prints.valid();
            if found.is_none() && valid == FULL {
                return Ok(Step::Split(locked));
            }
            let value = match next(found.is_some().then_some(&value)) {
                Ok(value) => value,
                Err(error) => return Ok(Step::Done(Err(error))),
            };
            let object = Pair::reserve(&self.store, key, &value)?;
            match found {
                Some((i, _)) => self.store.commit([Change::Replace { slot: leaf_slot(leaf.at, i), object }])?,
                None => {
                    self.insert(leaf, valid, print, object)?;
                    top.count.fetch_add(1, Ordering::Relaxed);
                }
            }
            self.record(Record::Set { key, value: &value }, top);
            Ok(Step::Done(Ok(())))
        })
    }

    /// Whether the key was there.
    pub fn remove(&self, key: &[u8]) -> Result<bool, StoreError> {
        let print = fingerprint(key);
        self.at_locked(key, |leaf, locked, top| {
            let Some((i, _)) = find(&self.store, leaf.at, &leaf.prints, key, print)? else {
                return Ok(Step::Done(false));
            };
            self.store.commit([Change::Free { slot: leaf_slot(leaf.at, i) }])?;
            leaf.prints.remove(i);
            self.record(Record::Del { key }, top);
            top.count.fetch_sub(1, Ordering::Relaxed);
            if leaf.prints.valid() == 0 {
                // The deletion succeeds anyway.
                let _ = self.drop_leaf(leaf, locked);
            }
            Ok(Step::Done(true))
        })
    }

    /// Reads all directories first.
    pub fn len(&self) -> Result<u64, StoreError> {
        let top = self.read_all()?;
        Ok(top.count.load(Ordering::Relaxed).max(0) as u64)
    }

    pub fn is_empty(&self) -> Result<bool, StoreError> {
        Ok(self.len()? == 0)
    }

    pub(crate) fn read_all(&self) -> Result<Arc<Top>, StoreError> {
        loop {
            let top = self.top.load_full();
            for dir in top.dirs.items() {
                if dir.view().is_none() {
                    dir.read(&self.store, &top.count)?;
                }
            }
            // A split leaves directories that are read, or unread now.
            let now = self.top.load_full();
            if now.dirs.items().iter().all(|dir| dir.view().is_some()) {
                return Ok(now);
            }
        }
    }

    #[inline]
    fn at_leaf<R>(
        &self,
        key: &[u8],
        mut f: impl FnMut(&Arc<Leaf>, &Top) -> Result<Option<R>, StoreError>,
    ) -> Result<R, StoreError> {
        loop {
            let top = self.top.load();
            let dir = top.dirs.child(key);
            let view = dir.view();
            let Some(leaves) = view.as_ref() else {
                dir.read(&self.store, &top.count)?;
                continue;
            };
            if let Some(result) = f(leaves.child(key), &top)? {
                return Ok(result);
            }
        }
    }

    fn at_locked<R>(
        &self,
        key: &[u8],
        mut f: impl for<'a> FnMut(&'a Arc<Leaf>, Locked<'a>, &Top) -> Result<Step<'a, R>, StoreError>,
    ) -> Result<R, StoreError> {
        self.at_leaf(key, |leaf, top| {
            let Some(locked) = leaf.latch.lock() else { return Ok(None) };
            match f(leaf, locked, top)? {
                Step::Done(result) => Ok(Some(result)),
                Step::Split(locked) => {
                    self.split(leaf, locked)?;
                    Ok(None)
                }
            }
        })
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Step<'a, R> {
    Done(R),
    Split(Locked<'a>),
}

/// Not yet published.
pub(crate) struct Empty<R> {
    pub index: R,
    pub dir: R,
    pub leaf: R,
}

impl<R: Reservation> Empty<R> {
    pub fn new<S: Store<Reserved = R>>(store: &S) -> Result<Self, StoreError> {
        let [index, dir, leaf] = reserve_all(store, [INDEX_BYTES, DIR_BYTES, LEAF_BYTES])?;
        write_index(store, index.at());
        // Nothing is reached until the whole is published.
        write_dir(store, dir.at(), b"", &[0])?;
        write_leaf(store, leaf.at(), b"", &[])?;
        Ok(Self { index, dir, leaf })
    }

    pub fn publish(self, slot: u64) -> ([Change<R>; 3], Top, Index) {
        let (index, dir, leaf) = (self.index.at(), self.dir.at(), self.leaf.at());
        let changes = [
            Change::Attach { slot, object: self.index },
            Change::Attach { slot: index_slot(index, 0), object: self.dir },
            Change::Attach { slot: dir_slot(dir, 0), object: self.leaf },
        ];
        let leaves = Sorted::new(vec![Leaf::new(leaf, Arc::new([]), Prints::of([]))]);
        let dir = Dir::new(dir, index_slot(index, 0), Arc::new([]), Some(leaves));
        let top = Top { dirs: Sorted::new(vec![dir]), count: Arc::default(), epoch: 0 };
        let free = (1..INDEX_SLOTS).rev().map(|i| index_slot(index, i)).collect();
        (changes, top, Index { free, next: index + 8 })
    }
}

fn new_root<S: Store>(store: &S, slot: u64) -> Result<(u64, Top, Index), StoreError> {
    let root = store.reserve(ROOT_BYTES)?;
    let empty = match Empty::new(store) {
        Ok(empty) => empty,
        Err(error) => {
            store.cancel(root);
            return Err(error);
        }
    };
    let at = root.at();
    store.store(at, MAGIC);
    store.store(at + 8, VERSION);
    store.store(at + LIVE, 0);
    store.store(at + DEAD, 0);
    store.store(at + GENERATION, 0);
    store.persist(at, ROOT_BYTES);
    let (changes, top, index) = empty.publish(at + LIVE);
    let attach = Change::Attach { slot, object: root };
    store.commit([attach].into_iter().chain(changes))?;
    Ok((at, top, index))
}

fn read_index<S: Store>(store: &S, root: u64) -> Result<(Top, Index), StoreError> {
    let mut index = Index { free: Vec::new(), next: root + LIVE };
    let mut dirs = Vec::new();
    let mut blocks = std::collections::BTreeSet::new();
    loop {
        let block = load(store, index.next)?;
        if block == 0 {
            break;
        }
        // A repeated block makes a circle.
        if load(store, block)? != INDEX_TAG || !blocks.insert(block) {
            return Err(StoreError::Damaged(block));
        }
        for slot in (0..INDEX_SLOTS).map(|i| index_slot(block, i)) {
            match load(store, slot)? {
                0 => index.free.push(slot),
                dir => dirs.push(Dir::found(store, dir, slot)?),
            }
        }
        index.next = block + 8;
    }
    dirs.sort_unstable_by(|a, b| a.low().cmp(b.low()));
    // The first directory serves the smallest keys.
    if dirs.first().is_none_or(|dir| !dir.low.is_empty()) || dirs.windows(2).any(|two| two[0].low == two[1].low) {
        return Err(StoreError::Damaged(root + LIVE));
    }
    Ok((Top { dirs: Sorted::new(dirs), count: Arc::default(), epoch: 0 }, index))
}
