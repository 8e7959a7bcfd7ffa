//! The seam below a persistent heap: memory whose contents outlive the process.
//!
//! **What.** A [`Medium`] is a range of bytes from 0, read and written in words of 8 bytes. A store
//! is *durable* when the medium's [`Promise`] covers it: at once where caches persist or only the
//! process can die, else after [`flush`](Medium::flush) of its line and a [`fence`](Medium::fence).
//! **From.** NVAlloc §2.1; the store order of x86 with volatile caches: a cache may evict a line at
//! any time, so a crash leaves some prefix of each line's stores; lines are ordered by fences
//! alone.
//! **Failure.** An offset that is out of range or not aligned is the heap's own bug, or a damaged
//! file that was not checked: the medium panics with the offset and reads nothing.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of a cache line, the unit of write-back.
pub const LINE_BYTES: u64 = 64;

/// Words of a cache line.
pub const LINE_WORDS: usize = 8;

/// The contents of a cache line.
pub type Line = [u64; LINE_WORDS];

/// The guarantee of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Fenced stores survive a power failure: persistent memory.
    PowerFailure,
    /// Every store survives the death of the process, and none a power failure: the page cache.
    ProcessCrash,
    /// The state of the last sync point survives a power failure, later stores nothing: a disk.
    PowerFailureAtSync,
}

/// Persistent memory in bytes `0..len`. Offsets of words are multiples of 8.
// An empty medium is no special case.
#[allow(clippy::len_without_is_empty)]
pub trait Medium: Send + Sync {
    /// Whether stores need write-back and fences to be durable. A constant, so that a medium
    /// without them costs nothing.
    const FLUSHES: bool;

    /// Bytes that are mapped now, a multiple of 4,096. Grows, and shrinks by request alone.
    fn len(&self) -> u64;

    /// The word at `at`. Loads go through it; stores through [`store`](Self::store) and
    /// [`update`](Self::update), which observers see.
    fn word(&self, at: u64) -> &AtomicU64;

    /// Stores a word, with release ordering. A medium that observes stores has its own, and so for
    /// the next two.
    #[inline(always)]
    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with the acquiring loads of the medium's users, and with the end of the
        // process: earlier stores are in the cache before this one.
        self.word(at).store(value, Ordering::Release);
    }

    /// Sets and clears bits of a word in one atomic step; returns the word before.
    #[inline(always)]
    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        let word = self.word(at);
        // With constants, one instruction. To set and to clear takes a loop.
        if clear == 0 {
            // ORDERING: pairs with the acquiring loads of the medium's users.
            return word.fetch_or(set, Ordering::AcqRel);
        }
        if set == 0 {
            // ORDERING: pairs with the acquiring loads of the medium's users.
            return word.fetch_and(!clear, Ordering::AcqRel);
        }
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let new = (old | set) & !clear;
            // ORDERING: pairs with the acquiring loads of the medium's users.
            match word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(old) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// Stores a whole line, past the cache where that is faster; `at` is a multiple of 64. The
    /// next fence makes it durable without a flush.
    fn store_line(&self, at: u64, line: &Line) {
        for (word, value) in line.iter().enumerate() {
            self.store(at + 8 * word as u64, *value);
        }
    }

    /// Begins to write back the line of the byte at `at`.
    fn flush(&self, at: u64);

    /// Waits until the lines that this thread has begun to write back are durable.
    fn fence(&self);

    /// Words from `at` on as an array, for structures that lie in the medium as such. Their stores
    /// go past [`store`](Self::store). `None`: the medium must see each store.
    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        let _ = (at, words);
        None
    }

    /// As [`words`](Self::words), of 4 bytes each; no word of 8 is used there.
    fn half_words(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        let _ = (at, words);
        None
    }
}

/// The space behind a medium: a file that grows, and gives unused parts back.
pub trait Space {
    /// Maps `len` bytes, a multiple of 4,096; new bytes read as zero. *Refused:* no change.
    fn resize(&self, len: u64) -> Result<(), SpaceError>;

    /// Gives back the memory of a range of whole pages, which then reads as zero. A power failure
    /// may bring the old contents back, until a page of the range is stored to.
    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError>;

    /// Makes room for pages about to be stored to, new or discarded ones, so that a full disk is
    /// an error here and no signal at the store. *Contents:* survive.
    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        let _ = (at, len);
        Ok(())
    }

    /// The largest `len` that [`resize`](Self::resize) can reach.
    fn limit(&self) -> u64;
}

/// Why a file cannot grow or give back. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpaceError {
    /// The disk, the quota or the address space is full.
    Full,
    /// The file cannot change its size: a device.
    Fixed,
    /// The system refused, with this `errno`.
    System(i32),
}
