//! Thread-local words as POSIX thread-specific values: slower, and portable.

use crate::statics::{TLS_COUNTDOWN, TLS_KEYS};
use core::sync::atomic::{AtomicU32, Ordering};
use craton_heap::thread_cache::ThreadCache;
use craton_os::thread::Key;

/// The key's number plus 1; 0 until the first [`set`].
fn cache_key() -> &'static AtomicU32 {
    &TLS_KEYS[0]
}

fn building_key() -> &'static AtomicU32 {
    &TLS_KEYS[1]
}

fn key() -> Option<Key> {
    // ORDERING: pairs with the Release in `set`: the key exists once its number is seen.
    cache_key().load(Ordering::Acquire).checked_sub(1).map(Key::from_number)
}

#[inline]
pub(crate) fn get() -> *mut ThreadCache {
    let cache: *mut ThreadCache = key().map_or(0, Key::get) as *mut ThreadCache;
    if cache.is_null() { super::none() } else { cache }
}

/// Without a free key the thread stays without.
pub(crate) fn set(cache: *mut ThreadCache) {
    if key().is_none()
        && let Some(new) = Key::create(None)
    {
        // ORDERING: pairs with the Acquire in `key`. Later threads keep the first key.
        let _ = cache_key().compare_exchange(0, new.number() + 1, Ordering::Release, Ordering::Relaxed);
    }
    if let Some(k) = key() {
        k.set(cache as usize);
    }
}

pub(crate) fn arrays() -> usize {
    1
}

pub(crate) fn set_arrays(_arrays: usize) {}

pub(crate) fn building() -> usize {
    // ORDERING: pairs with the Release in `set_building`.
    building_key().load(Ordering::Acquire).checked_sub(1).map_or(0, |key| Key::from_number(key).get())
}

/// Without a free key nested constructors go undetected.
pub(crate) fn set_building(building: usize) {
    if building_key().load(Ordering::Relaxed) == 0
        && let Some(new) = Key::create(None)
    {
        // ORDERING: pairs with the Acquire in `building`.
        let _ = building_key().compare_exchange(0, new.number() + 1, Ordering::Release, Ordering::Relaxed);
    }
    if let Some(key) = building_key().load(Ordering::Relaxed).checked_sub(1) {
        Key::from_number(key).set(building);
    }
}

pub(crate) fn is_inside() -> bool {
    false
}

pub(crate) fn swap_inside(_inside: u64) -> u64 {
    0
}

/// Every thread counts as busy.
pub(crate) fn count_use() -> u64 {
    u64::MAX
}

/// Of all threads together.
pub(crate) fn count_bytes(bytes: i64) -> i64 {
    TLS_COUNTDOWN.fetch_sub(bytes, Ordering::Relaxed) - bytes
}

pub(crate) fn set_countdown(bytes: i64) {
    TLS_COUNTDOWN.store(bytes, Ordering::Relaxed);
}

pub(crate) fn number() -> usize {
    0
}

pub(crate) fn set_number(_number: usize) {}
