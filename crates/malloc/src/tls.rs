//! Where a thread finds its cache: one word of thread-local memory, and one that counts what it did without.
//!
//! **What.** [`get`] and [`set`] read and write the calling thread's pointer. It starts out at [`NO_CACHE`], on which every
//! fast path fails, so that no test for "not yet set up" stands in them.

use crate::cpu_cache::thread::{NoCache, ThreadCache};

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) use portable::{count_use, get, set};
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
pub(crate) use x86_64::{count_use, get, set};

/// The cache of a thread that has none yet.
static NO_CACHE: NoCache = NoCache::new();
/// The cache of a thread that is ending: it has given its cache back and must not get another.
static GONE: NoCache = NoCache::new();

/// The pointer of a thread that has no cache yet.
pub(crate) fn none() -> *mut ThreadCache {
    (&raw const NO_CACHE).cast_mut().cast()
}

/// The pointer of a thread that has given its cache back.
pub(crate) fn gone() -> *mut ThreadCache {
    (&raw const GONE).cast_mut().cast()
}
