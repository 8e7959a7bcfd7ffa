//! All thread caches of the process, and the memory they lie in.
//!
//! **What.** Caches come from mappings of their own and are never unmapped: one that a thread leaves behind serves
//! the next, which begins it anew. In the child of a fork the caches of the threads that are no more are free for the taking, too. What they
//! hold is lost there: a thread may have been stopped between any two stores, and what it had just given to a slab can still be on its list.
//!
//! **Unsafe.** Carves caches from mappings, and follows the list of them.

use core::ptr::null_mut;
use craton_heap::thread_cache::ThreadCache;
use craton_os::mapping;

/// Bytes mapped at a time; memory follows on first touch.
const CHUNK: usize = 256 << 10;

/// The list of all caches.
pub(crate) struct Registry {
    first: *mut ThreadCache,
    /// Caches in use.
    taken: usize,
    /// Caches in the list.
    carved: usize,
    chunk: usize,
    chunk_left: usize,
}

// SAFETY: the registry owns the list; a cache itself is used by its thread alone.
unsafe impl Send for Registry {}

impl Registry {
    /// Where it keeps the address of the first cache, in bytes, for those who read the memory of another process.
    pub(crate) const FIRST: usize = core::mem::offset_of!(Self, first);

    pub(crate) const EMPTY: Self = Self { first: null_mut(), taken: 0, carved: 0, chunk: 0, chunk_left: 0 };

    /// Caches in use.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Takes a cache that nobody uses; `None` when there is no memory.
    pub(crate) fn take(&mut self) -> Option<*mut ThreadCache> {
        let old = self.all().find(|c| {
            // SAFETY: caches in the list exist; `taken` changes under the registry's lock only.
            unsafe { !(**c).taken }
        });
        let cache = match old {
            Some(cache) => cache,
            None => self.carve()?,
        };
        // SAFETY: the cache is ours to give.
        unsafe { (*cache).taken = true };
        self.taken += 1;
        Some(cache)
    }

    /// Takes a cache back, empty.
    ///
    /// # Safety
    /// The cache came from `take` and is no longer used.
    pub(crate) unsafe fn give(&mut self, cache: *mut ThreadCache) {
        // SAFETY: by the contract.
        unsafe { (*cache).taken = false };
        self.taken -= 1;
    }

    /// In the child of a fork: only the calling thread's cache, if it has one, is still in use.
    pub(crate) fn forked(&mut self, own: *mut ThreadCache) {
        self.taken = 0;
        for cache in self.all() {
            // SAFETY: caches in the list exist, and no other thread does.
            unsafe { (*cache).taken = cache == own };
            self.taken += usize::from(cache == own);
        }
    }

    /// Has the next free of each thread leave its cache's fast path.
    pub(crate) fn fail_all(&self) {
        for cache in self.all() {
            // SAFETY: caches in the list exist; this field of theirs is for others, too.
            unsafe { ThreadCache::fail(cache) };
        }
    }

    fn all(&self) -> impl Iterator<Item = *mut ThreadCache> + use<> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            let cache = (!at.is_null()).then_some(at)?;
            // SAFETY: caches in the list exist, and links never change once set.
            at = unsafe { (*cache).next };
            Some(cache)
        })
    }

    fn carve(&mut self) -> Option<*mut ThreadCache> {
        let size = size_of::<ThreadCache>();
        if self.chunk_left < size {
            self.chunk = mapping::map(CHUNK, 1)?;
            self.chunk_left = CHUNK;
        }
        let cache = self.chunk as *mut ThreadCache;
        self.chunk += size;
        self.chunk_left -= size;
        // SAFETY: fresh memory of the chunk, aligned since chunks are pages and sizes multiples of the alignment.
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
