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
mod tests {
    use super::*;

    /// How many requests a thread makes before it earns a cache; `None` if 10,000 do not do.
    fn requests_before(admission: &Admission) -> Option<u64> {
        let mut uses = 0;
        (0..10_000).find(|_| {
            admission.earns(|| {
                uses += 1;
                uses - 1
            })
        })
    }

    #[test]
    fn the_first_thread_gets_a_cache_at_once_and_others_by_their_use() {
        let admission = Admission::new();
        assert_eq!(requests_before(&admission), Some(0));
        admission.count(1);
        assert_eq!(requests_before(&admission), Some(USES_WITHOUT));
    }

    #[test]
    fn there_are_four_caches_a_processor_and_at_least_sixteen() {
        for (processors, most) in [(1, 16), (4, 16), (5, 20), (64, 256)] {
            let admission = Admission::new();
            admission.allow(processors);
            admission.count(most - 1);
            assert_eq!(requests_before(&admission), Some(USES_WITHOUT), "{processors} processors");
            admission.count(most);
            assert_eq!(requests_before(&admission), None, "{processors} processors");
        }
    }

    #[test]
    fn the_option_gives_a_cache_to_every_thread_or_to_none() {
        let admission = Admission::new();
        admission.set_caches_for(CachesFor::Threads);
        admission.count(10_000);
        assert!(admission.earns(|| unreachable!("requests do not count")));
        admission.set_caches_for(CachesFor::Processors);
        admission.count(0);
        assert!(!admission.earns(|| unreachable!("requests do not count")));
        assert_eq!(admission.caches_for(), CachesFor::Processors);
    }

    #[test]
    fn caches_get_less_when_there_are_many_and_never_more_than_the_option_says() {
        let admission = Admission::new();
        assert_eq!((admission.share(1), admission.share(16)), (CACHE_BYTES, CACHE_BYTES));
        assert_eq!(admission.share(32), ALL_BYTES / 32);
        assert_eq!((admission.share(1000), admission.least_share()), (LEAST_BYTES, LEAST_BYTES));
        admission.set_cache_bytes(64 << 10);
        assert_eq!(
            (admission.share(1), admission.share(1000), admission.least_share()),
            (64 << 10, 64 << 10, 64 << 10)
        );
    }
}
