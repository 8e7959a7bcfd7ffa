//! A thread's words of thread-local memory. The cache pointer starts at [`NO_CACHE`], on which fast
//! paths fail, so that they need no test for set-up.

use crate::statics::NO_CACHE;
use craton_heap::thread_cache::{NO_CACHES, ThreadCache};
use craton_os::process;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod x86_64;

#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
use portable as words;
pub(crate) use words::{arrays, building, count_bytes, count_use, get, is_inside};
pub(crate) use words::{set, set_arrays, set_building, set_countdown, swap_inside};
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use x86_64 as words;

const SHARED: usize = usize::MAX;

/// Asked for once; each time in tasks that share the word ([`share_number`]). A process made past
/// the C library has its parent's.
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

pub(crate) fn clear_number() {
    words::set_number(0);
}

pub(crate) fn share_number() {
    words::set_number(SHARED);
}

pub(crate) fn none() -> *mut ThreadCache {
    NO_CACHE.get(0)
}

/// The thread gets no other cache.
pub(crate) fn gone() -> *mut ThreadCache {
    NO_CACHE.get(1)
}

pub(crate) fn visitor() -> *mut ThreadCache {
    NO_CACHE.get(2)
}

/// The kernel does not restart its sequences.
pub(crate) fn alone() -> *mut ThreadCache {
    NO_CACHE.get(3)
}

pub(crate) fn is_none(cache: *mut ThreadCache) -> bool {
    let (first, last) = (NO_CACHE.get(0) as usize, NO_CACHE.get(NO_CACHES - 1) as usize);
    (cache as usize).wrapping_sub(first) <= last - first
}

pub(crate) fn own() -> Option<*mut ThreadCache> {
    let cache = get();
    (!is_none(cache)).then_some(cache)
}

#[cfg(all(test, not(loom)))]
mod tests;
