//! Where a thread finds its cache: one word of thread-local memory; one that counts what it did without; one that says where it is; two for
//! object caches; one for its number.
//!
//! **What.** [`get`] and [`set`] read and write the calling thread's pointer. It starts out at [`NO_CACHE`], on which every
//! fast path fails, so that no test for "not yet set up" stands in them.

use crate::statics::NO_CACHE;
use craton_heap::thread_cache::{NO_CACHES, ThreadCache};
use craton_os::process;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
use portable as words;
pub(crate) use words::{arrays, building, count_use, get, is_inside, set, set_arrays, set_building, swap_inside};
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use x86_64 as words;

/// Instead of a thread's number: two tasks share the word, and each asks for its own.
const SHARED: usize = usize::MAX;

/// The calling thread's number, as the system counts threads: asked for once. A task that was made past the C library without memory of its
/// own shares the word with the one that made it; then each call asks ([`share_number`]). A process that was made past the C library
/// as well has its parent's number.
pub(crate) fn thread_id() -> u32 {
    match words::number() {
        0 => {
            let number = process::thread_id();
            words::set_number(number as usize);
            number
        }
        SHARED => process::thread_id(),
        number => number as u32,
    }
}

/// The number holds no more: the thread is that of another process.
pub(crate) fn forget_number() {
    words::set_number(0);
}

/// From now on two tasks share the words of the calling thread.
pub(crate) fn share_number() {
    words::set_number(SHARED);
}

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

/// The calling thread's cache, if it has one.
pub(crate) fn own() -> Option<*mut ThreadCache> {
    let cache = get();
    (!is_none(cache)).then_some(cache)
}

#[cfg(all(test, not(loom)))]
mod tests;
