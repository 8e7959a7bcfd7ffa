//! Where a thread finds its cache: one word of thread-local memory; one that counts what it did without; one that says where it is; two for
//! object caches.
//!
//! **What.** [`get`] and [`set`] read and write the calling thread's pointer. It starts out at [`NO_CACHE`], on which every
//! fast path fails, so that no test for "not yet set up" stands in them.

use crate::cpu_cache::thread::{NO_CACHES, NoCaches, ThreadCache};

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
pub(crate) use portable::{arrays, building, count_use, get, is_inside, set, set_arrays, set_building, swap_inside};
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
pub(crate) use x86_64::{arrays, building, count_use, get, is_inside, set, set_arrays, set_building, swap_inside};

/// What the pointers of threads without a cache of their own point at; that of a thread which has none yet is the first.
static NO_CACHE: NoCaches = NoCaches::new();

/// The pointer of a thread that has no cache yet.
pub(crate) fn none() -> *mut ThreadCache {
    NO_CACHE.get(0)
}

/// The pointer of a thread that is ending: it has given its cache back and must not get another.
pub(crate) fn gone() -> *mut ThreadCache {
    NO_CACHE.get(1)
}

/// The pointer of a thread that uses the caches of processors: its restartable sequences are its own.
pub(crate) fn visitor() -> *mut ThreadCache {
    NO_CACHE.get(2)
}

/// The pointer of a thread that uses no processor's cache either, since the kernel does not restart what it does there.
pub(crate) fn alone() -> *mut ThreadCache {
    NO_CACHE.get(3)
}

/// Whether a pointer is that of a thread without a cache of its own.
pub(crate) fn is_none(cache: *mut ThreadCache) -> bool {
    // They lie one behind the other, overlapping.
    let (first, last) = (NO_CACHE.get(0) as usize, NO_CACHE.get(NO_CACHES - 1) as usize);
    (cache as usize).wrapping_sub(first) <= last - first
}
