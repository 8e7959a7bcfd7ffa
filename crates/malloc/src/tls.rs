//! Where a thread finds its cache: one word of thread-local memory; one that counts what it did without; one that says where it is.
//!
//! **What.** [`get`] and [`set`] read and write the calling thread's pointer. It starts out at [`NO_CACHE`], on which every
//! fast path fails, so that no test for "not yet set up" stands in them.

use crate::cpu_cache::thread::{NoCache, ThreadCache};

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) use portable::{count_use, get, is_inside, set, swap_inside};
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
pub(crate) use x86_64::{count_use, get, is_inside, set, swap_inside};

/// The cache of a thread that has none yet.
static NO_CACHE: NoCache = NoCache::new();
/// The cache of a thread that is ending: it has given its cache back and must not get another.
static GONE: NoCache = NoCache::new();
/// The cache of a thread without one that processors' caches serve: its restartable sequences are its own.
static VISITOR: NoCache = NoCache::new();
/// The cache of a thread that has none and uses no processor's either, since the kernel does not restart what it does there.
static ALONE: NoCache = NoCache::new();

/// The pointer of a thread that has no cache yet.
pub(crate) fn none() -> *mut ThreadCache {
    (&raw const NO_CACHE).cast_mut().cast()
}

/// The pointer of a thread that has given its cache back.
pub(crate) fn gone() -> *mut ThreadCache {
    (&raw const GONE).cast_mut().cast()
}

/// The pointer of a thread that uses the caches of processors.
pub(crate) fn visitor() -> *mut ThreadCache {
    (&raw const VISITOR).cast_mut().cast()
}

/// The pointer of a thread that uses no cache at all.
pub(crate) fn alone() -> *mut ThreadCache {
    (&raw const ALONE).cast_mut().cast()
}

/// Whether a pointer is that of a thread without a cache of its own.
pub(crate) fn is_none(cache: *mut ThreadCache) -> bool {
    cache == none() || cache == visitor() || cache == gone() || cache == alone()
}
