//! The seam below a persistent heap: memory whose contents outlive the process.
//!
//! **What.** A store is *durable* when the medium's [`Promise`] covers it: at once where caches
//! persist or only the process can die, else after [`flush`](Medium::flush) of its line and a
//! [`fence`](Medium::fence). A bad offset panics: it is the heap's bug, or an unchecked damaged
//! file.
//! **From.** NVAlloc §2.1; x86's store order: a crash leaves some prefix of each line's stores;
//! only fences order lines.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};

pub const LINE_BYTES: u64 = 64;

pub const LINE_WORDS: usize = 8;

pub type Line = [u64; LINE_WORDS];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Persistent memory: fenced stores survive.
    PowerFailure,
    /// The page cache: no store survives a power failure.
    ProcessCrash,
    /// A disk: later stores are lost.
    PowerFailureAtSync,
}

/// Offsets of words are multiples of 8.
#[allow(clippy::len_without_is_empty)]
pub trait Medium: Send + Sync {
    /// Whether stores need write-back and fences.
    const FLUSHES: bool;

    /// Mapped bytes, a multiple of 4,096. Shrinks by request alone.
    fn len(&self) -> u64;

    /// Observers see stores of [`store`](Self::store) and [`update`](Self::update) only.
    fn word(&self, at: u64) -> &AtomicU64;

    /// A medium that observes stores overrides this and the next two.
    #[inline(always)]
    fn store(&self, at: u64, value: u64) {
        // ORDERING: pairs with acquiring loads of the medium's users, and with the process's end.
        self.word(at).store(value, Ordering::Release);
    }

    /// One atomic step; returns the word before.
    #[inline(always)]
    fn update(&self, at: u64, set: u64, clear: u64) -> u64 {
        let word = self.word(at);
        // One instruction if either is constant 0, else a loop.
        if clear == 0 {
            // ORDERING: pairs with acquiring loads of the medium's users.
            return word.fetch_or(set, Ordering::AcqRel);
        }
        if set == 0 {
            // ORDERING: as above.
            return word.fetch_and(!clear, Ordering::AcqRel);
        }
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let new = (old | set) & !clear;
            // ORDERING: as above.
            match word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(old) => return old,
                Err(now) => old = now,
            }
        }
    }

    /// At a multiple of 64, past the cache where that is faster. The next fence makes it durable
    /// without a flush.
    fn store_line(&self, at: u64, line: &Line) {
        for (word, value) in line.iter().enumerate() {
            self.store(at + 8 * word as u64, *value);
        }
    }

    /// Of the byte's line.
    fn flush(&self, at: u64);

    /// Waits until the lines that this thread flushed are durable.
    fn fence(&self);

    /// `None`: read them one by one.
    fn words(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        let _ = (at, words);
        None
    }

    /// For places that are read once. `false`: nothing was copied.
    fn copy(&self, at: u64, into: &mut [u64]) -> bool {
        let _ = (at, into);
        false
    }

    /// From `at`, a multiple of 64. Stores go past [`store`](Self::store); each is reported to
    /// [`stored`](Self::stored). `None`: the medium has no arrays.
    fn array(&self, at: u64, words: usize) -> Option<&[AtomicU64]> {
        self.words(at, words)
    }

    /// As [`array`](Self::array), in words of 4 bytes.
    fn half_array(&self, at: u64, words: usize) -> Option<&[AtomicU32]> {
        let _ = (at, words);
        None
    }

    /// After a store to the word of an array at `at`.
    #[inline(always)]
    fn stored(&self, at: u64) {
        let _ = at;
    }
}

pub trait Space {
    /// A multiple of 4,096; new bytes read as zero. *Refused:* no change.
    fn resize(&self, len: u64) -> Result<(), SpaceError>;

    /// Whole pages read as zero; a power failure may restore the old contents until a store.
    fn discard(&self, at: u64, len: u64) -> Result<(), SpaceError>;

    /// A full disk is an error here, not a signal at the store. *Contents:* survive.
    fn allocate(&self, at: u64, len: u64) -> Result<(), SpaceError> {
        let _ = (at, len);
        Ok(())
    }

    fn limit(&self) -> u64;
}

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpaceError {
    /// Disk, quota or address space.
    Full,
    /// A device.
    Fixed,
    /// The system's `errno`.
    System(i32),
}
