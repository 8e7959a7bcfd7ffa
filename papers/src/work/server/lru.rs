//! The workload's cache: values that change size, the least recently used thrown out.
//!
//! **State.** Each entry is an object of its own, found by its key and linked to its neighbours in the order of use by
//! their keys. **Units.** The budget counts the bytes of values, not of entries.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

struct Entry {
    value: Vec<u8>,
    /// The entry used next after this one was.
    newer: Option<u64>,
    /// The entry used last before this one was.
    older: Option<u64>,
}

/// A cache from keys to bytes.
#[derive(Default)]
pub struct Lru {
    // A fixed hash function: the table's growth is the same in each run.
    entries: HashMap<u64, Box<Entry>, BuildHasherDefault<DefaultHasher>>,
    newest: Option<u64>,
    oldest: Option<u64>,
    bytes: usize,
}

impl Lru {
    /// The value of `key`, which becomes the last used.
    pub fn get(&mut self, key: u64) -> Option<&[u8]> {
        let mut entry = self.unlink(key)?;
        (entry.newer, entry.older) = (None, None);
        self.link(key, entry);
        self.entries.get(&key).map(|entry| entry.value.as_slice())
    }

    /// Gives a key a value, in place of any that it has.
    pub fn insert(&mut self, key: u64, value: Vec<u8>) {
        drop(self.unlink(key));
        self.link(key, Box::new(Entry { value, newer: None, older: None }));
    }

    /// Makes the value of `key` as long as asked, filling with `byte`, in place where the allocator can.
    pub fn resize(&mut self, key: u64, len: usize, byte: u8) {
        if let Some(entry) = self.entries.get_mut(&key) {
            self.bytes -= entry.value.len();
            entry.value.resize(len, byte);
            entry.value.shrink_to_fit();
            self.bytes += len;
        }
    }

    /// Throws out what was not used for longest, until the values fit in `budget` bytes.
    pub fn shrink_to(&mut self, budget: usize) {
        while self.bytes > budget
            && let Some(oldest) = self.oldest
        {
            drop(self.unlink(oldest));
        }
    }

    /// Bytes of all values.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn unlink(&mut self, key: u64) -> Option<Box<Entry>> {
        let entry = self.entries.remove(&key)?;
        self.bytes -= entry.value.len();
        match entry.newer.and_then(|newer| self.entries.get_mut(&newer)) {
            Some(newer) => newer.older = entry.older,
            None => self.newest = entry.older,
        }
        match entry.older.and_then(|older| self.entries.get_mut(&older)) {
            Some(older) => older.newer = entry.newer,
            None => self.oldest = entry.newer,
        }
        Some(entry)
    }

    fn link(&mut self, key: u64, mut entry: Box<Entry>) {
        self.bytes += entry.value.len();
        entry.older = self.newest;
        match self.newest.and_then(|newest| self.entries.get_mut(&newest)) {
            Some(newest) => newest.newer = Some(key),
            None => self.oldest = Some(key),
        }
        self.newest = Some(key);
        self.entries.insert(key, entry);
    }
}

#[cfg(test)]
mod tests;
