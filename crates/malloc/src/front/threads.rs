//! How a thread comes to a cache of its own, and gives it up.
//!
//! **Unsafe.** Empties and gives caches that are one thread's.

use super::{
    ALL_CACHES_BYTES, CACHES, HEAP, LEAST_CACHE_BYTES, PROCESSOR_CACHES, THREAD_CACHE_BYTES, count_threads,
    earns_cache, existing_cache, prepare_for_threads,
};
use crate::cpu_cache::thread::ThreadCache;
use crate::segment::SEGMENT;
use crate::{debug, nested, tls};
use core::sync::atomic::Ordering;
use craton_os::rseq::Rseq;

/// With one in so many threads that get a cache, those of the processors are emptied.
const THREADS_TO_EMPTY: u64 = 8;

/// A cache for the calling thread.
pub(super) fn new_cache() -> Option<*mut ThreadCache> {
    let mut caches = CACHES.lock();
    let cache = caches.take()?;
    let share = ALL_CACHES_BYTES / caches.taken();
    count_threads(&caches);
    if caches.taken() > 1 {
        prepare_for_threads(&caches);
    }
    // SAFETY: the registry gave the cache to us alone.
    let home = HEAP.home(unsafe { (*cache).number });
    drop(caches);
    let most = THREAD_CACHE_BYTES.load(Ordering::Relaxed);
    // SAFETY: the registry gave the cache to us alone.
    unsafe {
        ThreadCache::begin(cache, HEAP.view(), &HEAP.flush_requests, home, most.min(share.max(LEAST_CACHE_BYTES)));
        debug::close_lists(&mut *cache);
    }
    // Threads that now have their own have left objects in the processors' caches, each of which keeps its slab from coming free.
    if (SEGMENT.threads_seen.load(Ordering::Relaxed) + 1).is_multiple_of(THREADS_TO_EMPTY) {
        PROCESSOR_CACHES.empty(&HEAP);
    }
    Some(cache)
}

/// Takes the calling thread's cache from it, if it has one; from then on it has `instead`.
pub(super) fn give_cache_up(instead: *mut ThreadCache) {
    let Some(cache) = existing_cache() else { return };
    tls::set(instead);
    nested::within(|| {
        // SAFETY: the thread has given its cache up, two lines before.
        unsafe {
            HEAP.empty_cache(cache);
            let mut caches = CACHES.lock();
            caches.give(cache);
            count_threads(&caches);
        }
    });
}

/// As [`super::without_cache`], in the first request of a thread: whether the kernel restarts its sequences is asked once. A task that was made
/// past the C library can have an area that looks as if it did.
#[cold]
pub(super) fn visits() -> Option<&'static Rseq> {
    let rseq = PROCESSOR_CACHES.rseq()?;
    if earns_cache() {
        return None;
    }
    let registered = rseq.is_registered();
    tls::set(if registered { tls::visitor() } else { tls::alone() });
    registered.then_some(rseq)
}

/// Has each thread's next free leave its cache's fast path, and heed what others ask of it.
pub(crate) fn fail_caches() {
    nested::within(|| CACHES.lock().fail_all());
}
