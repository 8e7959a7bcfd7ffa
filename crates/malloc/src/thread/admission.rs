//! Which threads get a cache of their own, and how large it may grow.
//!
//! **What.** The option `caches=auto` gives a cache to the first thread, and to threads with many requests as long as there
//! are at most [`PER_PROCESSOR`] caches a processor and [`LEAST`] in all; other threads use the per-CPU caches.
//! `caches=thread` gives one to every thread, `caches=cpu` to none. The option `thread_cache` bounds each; all together
//! grow to [`ALL_BYTES`] before each gets less.
//!
//! **Threads.** Written under the lock of the list of caches; read without it, so that one thread may come too early or late.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

const PER_PROCESSOR: usize = 4;
const LEAST: usize = 16;
/// Requests that the per-CPU caches serve for a thread before it gets its own cache.
const USES_WITHOUT: u64 = 256;
/// The option `thread_cache` unless it is set.
const CACHE_BYTES: usize = 2 << 20;
/// What all threads' caches together may hold before a new one gets less.
const ALL_BYTES: usize = 32 << 20;
/// What a new cache may hold in any case.
const LEAST_BYTES: usize = 256 << 10;

/// The option `caches`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum CachesFor {
    /// The first thread, and busy ones while they are few.
    Auto,
    /// Every thread.
    Threads,
    /// No thread: the per-CPU caches serve all.
    Processors,
}

/// The options, and how many threads have a cache.
pub(crate) struct Admission {
    caches_for: AtomicU8,
    cache_bytes: AtomicUsize,
    /// Threads with a cache, and how many may have one by the option's default.
    own: AtomicUsize,
    most: AtomicUsize,
}

impl Admission {
    /// Before the first thread.
    pub(crate) const fn new() -> Self {
        Self {
            caches_for: AtomicU8::new(CachesFor::Auto as u8),
            cache_bytes: AtomicUsize::new(CACHE_BYTES),
            own: AtomicUsize::new(0),
            most: AtomicUsize::new(LEAST),
        }
    }

    /// The option `caches`.
    pub(crate) fn caches_for(&self) -> CachesFor {
        match self.caches_for.load(Relaxed) {
            mode if mode == CachesFor::Threads as u8 => CachesFor::Threads,
            mode if mode == CachesFor::Processors as u8 => CachesFor::Processors,
            _ => CachesFor::Auto,
        }
    }

    /// Sets the option `caches`, for threads that have none yet.
    pub(crate) fn set_caches_for(&self, caches_for: CachesFor) {
        self.caches_for.store(caches_for as u8, Relaxed);
    }

    /// The option `thread_cache`: bytes that one thread's cache may hold at most.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_bytes.load(Relaxed)
    }

    /// Sets the option `thread_cache`, for caches that begin from now on.
    pub(crate) fn set_cache_bytes(&self, bytes: usize) {
        self.cache_bytes.store(bytes, Relaxed);
    }

    /// Bytes for the cache of a new thread, the `threads`-th (from 1 on).
    pub(crate) fn share(&self, threads: usize) -> usize {
        self.cache_bytes().min((ALL_BYTES / threads).max(LEAST_BYTES))
    }

    /// Bytes for a cache whose thread had to give up what it held.
    pub(crate) fn least_share(&self) -> usize {
        self.cache_bytes().min(LEAST_BYTES)
    }

    /// How many threads have a cache.
    pub(crate) fn count(&self, own: usize) {
        self.own.store(own, Relaxed);
    }

    /// Allows for caches by the number of processors.
    pub(crate) fn allow(&self, processors: usize) {
        self.most.store((PER_PROCESSOR * processors).max(LEAST), Relaxed);
    }

    /// Whether a thread without a cache is to get one now. `count_use` counts a request of the thread, and returns how many
    /// there were before.
    #[inline]
    pub(crate) fn earns(&self, count_use: impl FnOnce() -> u64) -> bool {
        let own = self.own.load(Relaxed);
        match self.caches_for() {
            CachesFor::Auto if own == 0 => true,
            CachesFor::Auto => count_use() >= USES_WITHOUT && own < self.most.load(Relaxed),
            mode => mode == CachesFor::Threads,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
