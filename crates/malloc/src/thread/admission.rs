//! Admission: which threads get a cache, and how large it grows. `caches=auto` admits the first
//! thread, and busy ones while few; others use per-CPU caches.
//!
//! **Threads.** Written under the registry's lock, read without: admission may be early or late.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

const PER_PROCESSOR: usize = 4;
const LEAST: usize = 16;
/// Requests before a thread earns a cache.
const USES_WITHOUT: u64 = 256;
const CACHE_BYTES: usize = 2 << 20;
const ALL_BYTES: usize = 32 << 20;
const LEAST_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum CachesFor {
    Auto,
    Threads,
    Processors,
}

pub(crate) struct Admission {
    caches_for: AtomicU8,
    cache_bytes: AtomicUsize,
    own: AtomicUsize,
    most: AtomicUsize,
}

impl Admission {
    pub(crate) const fn new() -> Self {
        Self {
            caches_for: AtomicU8::new(CachesFor::Auto as u8),
            cache_bytes: AtomicUsize::new(CACHE_BYTES),
            own: AtomicUsize::new(0),
            most: AtomicUsize::new(LEAST),
        }
    }

    pub(crate) fn caches_for(&self) -> CachesFor {
        match self.caches_for.load(Relaxed) {
            mode if mode == CachesFor::Threads as u8 => CachesFor::Threads,
            mode if mode == CachesFor::Processors as u8 => CachesFor::Processors,
            _ => CachesFor::Auto,
        }
    }

    pub(crate) fn set_caches_for(&self, caches_for: CachesFor) {
        self.caches_for.store(caches_for as u8, Relaxed);
    }

    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_bytes.load(Relaxed)
    }

    pub(crate) fn set_cache_bytes(&self, bytes: usize) {
        self.cache_bytes.store(bytes, Relaxed);
    }

    /// Of the `threads`-th thread's cache (from 1).
    pub(crate) fn share(&self, threads: usize) -> usize {
        self.cache_bytes().min((ALL_BYTES / threads).max(LEAST_BYTES))
    }

    pub(crate) fn least_share(&self) -> usize {
        self.cache_bytes().min(LEAST_BYTES)
    }

    pub(crate) fn count(&self, own: usize) {
        self.own.store(own, Relaxed);
    }

    pub(crate) fn allow(&self, processors: usize) {
        self.most.store((PER_PROCESSOR * processors).max(LEAST), Relaxed);
    }

    /// `count_use` counts a request and returns the earlier ones.
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
