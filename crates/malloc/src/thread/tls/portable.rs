//! The thread's pointer through a POSIX thread-specific value: slower, and the same everywhere.

use crate::statics::TLS_KEYS;
use core::sync::atomic::{AtomicU32, Ordering};
use craton_heap::thread_cache::ThreadCache;
use craton_os::thread::Key;

/// The key plus 1 of the cache; 0 until [`set`] is first called.
fn cache_key() -> &'static AtomicU32 {
    &TLS_KEYS[0]
}

/// Likewise that of [`building`].
fn building_key() -> &'static AtomicU32 {
    &TLS_KEYS[1]
}

fn key() -> Option<Key> {
    // ORDERING: Acquire pairs with the Release in `set`: the key exists once its number is seen.
    cache_key().load(Ordering::Acquire).checked_sub(1).map(Key::from_number)
}

/// The calling thread's cache.
#[inline]
pub(crate) fn get() -> *mut ThreadCache {
    let cache: *mut ThreadCache = key().map_or(0, Key::get) as *mut ThreadCache;
    if cache.is_null() { super::none() } else { cache }
}

/// Sets the calling thread's cache. When the system has no key left the thread stays without.
pub(crate) fn set(cache: *mut ThreadCache) {
    if key().is_none()
        && let Some(new) = Key::create(None)
    {
        // ORDERING: Release pairs with the Acquire in `key`. A thread that comes second keeps the first one's key.
        let _ = cache_key().compare_exchange(0, new.number() + 1, Ordering::Release, Ordering::Relaxed);
    }
    if let Some(k) = key() {
        k.set(cache as usize);
    }
}

/// The processors' arrays of object caches: there are none here.
pub(crate) fn arrays() -> usize {
    1
}

/// Sets that, which changes nothing here.
pub(crate) fn set_arrays(_arrays: usize) {}

/// The innermost of the constructors that the calling thread runs, an address on its stack; 0 for none.
pub(crate) fn building() -> usize {
    // ORDERING: Acquire pairs with the Release in `set_building`.
    building_key().load(Ordering::Acquire).checked_sub(1).map_or(0, |key| Key::from_number(key).get())
}

/// Sets that. When the system has no key left, a constructor that comes back is not seen.
pub(crate) fn set_building(building: usize) {
    if building_key().load(Ordering::Relaxed) == 0
        && let Some(new) = Key::create(None)
    {
        // ORDERING: Release pairs with the Acquire in `building`.
        let _ = building_key().compare_exchange(0, new.number() + 1, Ordering::Release, Ordering::Relaxed);
    }
    if let Some(key) = building_key().load(Ordering::Relaxed).checked_sub(1) {
        Key::from_number(key).set(building);
    }
}

/// Whether the thread noted that it is in a request; here nobody does.
pub(crate) fn is_inside() -> bool {
    false
}

/// Notes it; here nobody looks.
pub(crate) fn swap_inside(_inside: u64) -> u64 {
    0
}

/// Counts a request of the calling thread; here nothing counts, and every thread is one that uses much.
pub(crate) fn count_use() -> u64 {
    u64::MAX
}

/// What is noted of the calling thread's number; here nobody notes it.
pub(crate) fn number() -> usize {
    0
}

/// Notes that, which changes nothing here.
pub(crate) fn set_number(_number: usize) {}
