//! The registry: all thread caches. In a fork's child the objects of lost threads' caches are lost:
//! a thread stopped between two stores may have one both in a slab and on its list.
//!
//! **Unsafe.** Carves caches from mappings, and follows their list.

use core::ptr::null_mut;
use craton_heap::thread_cache::ThreadCache;
use craton_os::mapping;

const CHUNK: usize = 256 << 10;

pub(crate) struct Registry {
    first: *mut ThreadCache,
    taken: usize,
    carved: usize,
    chunk: usize,
    chunk_left: usize,
}

// SAFETY: the registry owns the list; only its thread uses a cache.
unsafe impl Send for Registry {}

impl Registry {
    pub(crate) const FIRST: usize = core::mem::offset_of!(Self, first);

    pub(crate) const EMPTY: Self = Self { first: null_mut(), taken: 0, carved: 0, chunk: 0, chunk_left: 0 };

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// For a hardened heap or not, always the same.
    pub(crate) fn alloc(&mut self, hardened: bool) -> Option<*mut ThreadCache> {
        let old = self.all().find(|c| {
            // SAFETY: listed caches exist; `taken` changes only under the registry's lock.
            unsafe { !(**c).taken }
        });
        let cache = match old {
            Some(cache) => cache,
            None => self.carve(hardened)?,
        };
        // SAFETY: unused or new, under that lock.
        unsafe { (*cache).taken = true };
        self.taken += 1;
        Some(cache)
    }

    /// # Safety
    /// An empty cache from `alloc`, no longer used.
    pub(crate) unsafe fn free(&mut self, cache: *mut ThreadCache) {
        // SAFETY: by the contract.
        unsafe { (*cache).taken = false };
        self.taken -= 1;
    }

    pub(crate) fn forked(&mut self, own: *mut ThreadCache) {
        self.taken = 0;
        for cache in self.all() {
            // SAFETY: listed caches exist, other threads do not.
            unsafe { (*cache).taken = cache == own };
            self.taken += usize::from(cache == own);
        }
    }

    pub(crate) fn fail_all(&self) {
        for cache in self.all() {
            // SAFETY: listed caches exist; other threads may write this field.
            unsafe { ThreadCache::fail(cache) };
        }
    }

    fn all(&self) -> impl Iterator<Item = *mut ThreadCache> + use<> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            let cache = (!at.is_null()).then_some(at)?;
            // SAFETY: listed caches exist, and a set link never changes.
            at = unsafe { (*cache).next };
            Some(cache)
        })
    }

    fn carve(&mut self, hardened: bool) -> Option<*mut ThreadCache> {
        let size = ThreadCache::bytes_of_one(hardened);
        if self.chunk_left < size {
            self.chunk = mapping::map(CHUNK, 1)?;
            self.chunk_left = CHUNK;
        }
        let cache = self.chunk as *mut ThreadCache;
        self.chunk += size;
        self.chunk_left -= size;
        // SAFETY: fresh memory of a page-aligned chunk; sizes are multiples of the alignment.
        unsafe {
            (*cache).next = self.first;
            (*cache).number = self.carved;
        }
        self.carved += 1;
        self.first = cache;
        Some(cache)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
