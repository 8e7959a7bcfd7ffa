//! The slow paths of a thread cache: refill, flush, and objects that bypass it.
//!
//! **From.** TEMERAIRE §3.
//!
//! **Unsafe.** Accesses objects that a cache or a caller gives up.

use crate::find::Found;
use crate::heap::Heap;
use crate::hooks::{Damage, Hooks};
use crate::mark;
use crate::misuse::Misuse;
use crate::owned::Owned;
use crate::size_class;
use crate::thread_cache::{ThreadCache, wait};
use core::ptr::null_mut;
use craton_base::{Clock, Machine, Pages, Platform};
use craton_slab::{Chain, Marks};

/// Heaps in which classes lend each other objects: 32 MiB.
const LENDS_BELOW: Pages = Pages(4096);

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Refills an empty list and returns one object; null without memory.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap.
    pub unsafe fn refill(&self, cache: *mut ThreadCache, class: usize) -> *mut u8 {
        // SAFETY: the cache is this thread's.
        let cache = unsafe { &mut *cache };
        if !cache.is_empty(class) {
            cache.forgo::<H>(class);
            // SAFETY: as above. A signal handler may have freed an object since the list was empty.
            let object = unsafe { ThreadCache::pop(cache, class) };
            if object.is_null() {
                H::corrupt(Damage::NotFree { class, at: cache.head(class) });
            }
            return object;
        }
        // SAFETY: as above.
        let object = unsafe { self.turn_for(cache, class) };
        if !object.is_null() {
            return object;
        }
        if cache.is_report_due(class) {
            // A program that frees less than it requests has no full list.
            // SAFETY: as above.
            unsafe { self.end_turn(cache, class) };
        }
        let pops = Self::expect_count(cache, class);
        let want = cache.want(class).min(cache.most_wanted(class));
        let mut chain = self.take(cache.home(), class, H::bound(class, want));
        cache.count_refill::<H>(class, pops, want);
        let object = self.pop_free(class, &mut chain);
        cache.fill_on::<H>(class, chain);
        // The slabs may have grown the heap; the cache must know the new pages.
        cache.look_again(self.view(), &self.flush_requests);
        if cache.is_look_due(self.in_use()) {
            self.give_what_lies_idle(cache);
        }
        object
    }

    /// Makes an empty list's count exact; reports objects that were lost or went out twice. Returns
    /// the pops since the count last was exact.
    fn expect_count(cache: &mut ThreadCache, class: usize) -> u32 {
        match cache.miscount(class) {
            (pops, 0) => pops,
            (_, twice @ 1..) => H::corrupt(Damage::GivenTwice { class, objects: twice.unsigned_abs() }),
            (_, lost) => H::corrupt(Damage::Lost { class, objects: lost.unsigned_abs() }),
        }
    }

    /// Serves a class with an empty list from a larger class's list. In a small heap, slabs with an
    /// object or two in use would be most of the memory. `None` if the list is not empty: its
    /// refill must see why nothing was popped.
    pub fn borrow(&self, cache: &mut ThreadCache, class: usize) -> Option<(*mut u8, usize)> {
        if self.in_use() < LENDS_BELOW && cache.is_empty(class) { cache.borrow(class) } else { None }
    }

    #[cold]
    fn give_what_lies_idle(&self, cache: &mut ThreadCache) {
        cache.begin_look(self.in_use());
        for class in 1..=size_class::CLASSES {
            let n = cache.idle(class);
            // SAFETY: the list has `n` objects and gives them up.
            cache.shorten(class, n, |first| unsafe { self.give_first(class, first, n) });
        }
    }

    /// Allocates without a cache; null without memory.
    pub fn take_one(&self, class: usize) -> *mut u8 {
        self.pop_free(class, &mut self.take(0, class, 1))
    }

    /// Pops an object that goes out; null from an empty chain.
    pub fn pop_free(&self, class: usize, chain: &mut Chain) -> *mut u8 {
        // SAFETY: the object bears its mark, has at least 16 bytes, and is ours until we return it.
        self.pop_marked(class, chain).inspect(|object| unsafe { mark::clear_head(*object) }).unwrap_or(null_mut())
    }

    /// As [`Heap::pop_free`], for a cache, which keeps the mark.
    pub fn pop_marked(&self, class: usize, chain: &mut Chain) -> Option<*mut u8> {
        if !chain.is_empty() {
            // Before its link is read.
            self.expect_free(class, chain.head());
        }
        chain.pop()
    }

    fn expect_free(&self, class: usize, object: *mut u8) {
        let marks = self.marks(class);
        if !marks.is_here(object) || !marks.is_set(object) {
            H::corrupt(Damage::NotFree { class, at: object });
        }
    }

    /// Checks and wipes the mark of an object that goes out; null stays null.
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // Reads the region alone, writes objects with their mark.
    pub fn wipe_mark(&self, class: usize, object: *mut u8) -> *mut u8 {
        if !object.is_null() {
            self.expect_free(class, object);
            // SAFETY: a free object, of at least 16 bytes, which is ours until we return it.
            unsafe { mark::clear_head(object) };
        }
        object
    }

    /// # Safety
    /// An object of the class begins there.
    pub unsafe fn is_free(&self, class: usize, object: *mut u8) -> bool {
        // SAFETY: by the contract; objects have at least 16 bytes.
        unsafe { self.marks(class).is_free(object) }
    }

    /// Marks an object whose free waits, so that the list of these can be checked.
    ///
    /// # Safety
    /// The object is a live one of the class, and given up.
    pub unsafe fn set_waiting(&self, class: usize, object: *mut u8) {
        // SAFETY: by the contract; objects have at least 16 bytes.
        unsafe { object.cast::<usize>().add(1).write(!self.seal(class).of(object)) };
    }

    /// Checks and wipes the mark of [`Heap::set_waiting`].
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // Only memory that the page map names ours is read.
    pub fn end_waiting(&self, object: *mut u8) {
        let class = self.recognise(object);
        // SAFETY: the start of a possible object is readable.
        let is_right =
            class.is_some_and(|class| unsafe { object.cast::<usize>().add(1).read() == !self.seal(class).of(object) });
        if !is_right {
            H::corrupt(Damage::NotFree { class: class.unwrap_or(1), at: object });
        }
        // SAFETY: it is an object that was given up.
        unsafe { mark::wipe(object) };
    }

    /// # Safety
    /// The object is one of the class, and given up.
    pub unsafe fn set_mark(&self, class: usize, object: *mut u8) {
        // SAFETY: by the contract; objects have at least 16 bytes.
        unsafe { self.seal(class).set(object) };
    }

    /// Frees an object without a cache.
    ///
    /// # Safety
    /// The caller has checked that the object is of `class`, and gives it up.
    pub unsafe fn give_one(&self, class: usize, object: *mut u8) {
        // SAFETY: by the contract; the mark makes a second free visible.
        unsafe {
            let object = self.mark_given(class, object);
            if !object.is_null() {
                self.give_marked(class, object);
            }
        }
    }

    /// Marks an object that no thread cache takes. In a hardened heap, clears it and returns an
    /// older waiting one instead, or null.
    ///
    /// # Safety
    /// As [`Heap::give_one`].
    #[inline(always)]
    pub unsafe fn mark_given(&self, class: usize, object: *mut u8) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe {
            self.set_mark(class, object);
            if self.is_hardened() {
                return self.wait(class, object);
            }
        }
        object
    }

    /// # Safety
    /// As [`Heap::give_one`]; the object is marked.
    #[cold]
    unsafe fn wait(&self, class: usize, object: *mut u8) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe { mark::clear(object, size_class::size_of_class(class)) };
        self.shards()[self.home(self.system.cpu())].waiting.exchange(class, object)
    }

    /// Frees the waiting objects that no thread cache has.
    pub(crate) fn end_waits(&self) {
        if self.is_hardened() {
            for shard in self.shards() {
                // SAFETY: the objects are this heap's, of the class, marked, and owned here.
                shard.waiting.drain(|class, object| unsafe { self.give_marked(class, object) });
            }
        }
    }

    /// Flushes a full list; returns whether it is to stay empty.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap.
    unsafe fn make_room(&self, cache: *mut ThreadCache, class: usize) -> bool {
        // SAFETY: the cache is this thread's; the chain holds objects that its list gave up.
        unsafe {
            if let Some(pops) = (*cache).recount(class) {
                let held = (*cache).len(class) as u32;
                (*cache).count_down::<H>(class, pops, held);
                let stays_empty = H::reused(class, pops);
                if stays_empty {
                    let chain = (*cache).drain::<H>(class, u32::MAX);
                    self.give(class, chain);
                }
                if stays_empty || !(*cache).is_nearly_full(class) {
                    return stays_empty;
                }
            } else if (*cache).counts_ahead() {
                (*cache).count_pops::<H>(class);
            }
            self.flush(cache, class);
            false
        }
    }

    /// # Safety
    /// As [`Heap::make_room`].
    unsafe fn flush(&self, cache: *mut ThreadCache, class: usize) {
        // SAFETY: as in `make_room`.
        unsafe {
            let (n, home) = ((*cache).overflow(class), (*cache).home());
            if n == size_class::batch(class) && self.passes_on(home, class) {
                let batch = (*cache).drain::<H>(class, n);
                self.pass_on_or_give(home, class, batch);
            } else {
                (*cache).shorten(class, n, |first| self.give_first(class, first, n));
            }
        }
    }

    /// Makes room in a hardened cache's list of newest objects; returns whether [`Heap::end_turn`]
    /// is due.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap.
    #[inline]
    pub unsafe fn turn_over(&self, cache: *mut ThreadCache, class: usize) -> bool {
        // SAFETY: the cache is this thread's.
        unsafe {
            (*cache).count_pops::<H>(class);
            (*cache).turn::<H>(class);
            (*cache).is_over(class) || (*cache).is_report_due(class)
        }
    }

    /// Flushes what a turn brought too much, and reports reuse: the next request may have to be
    /// slow then.
    ///
    /// # Safety
    /// As [`Heap::turn_over`].
    #[cold]
    pub unsafe fn end_turn(&self, cache: *mut ThreadCache, class: usize) {
        // SAFETY: the cache is this thread's; chains hold objects that its lists gave up.
        unsafe {
            if (*cache).is_report_due(class) {
                let requests = (*cache).take_reuse(class);
                if H::reused(class, requests) {
                    let rest = (*cache).drain::<H>(class, u32::MAX);
                    self.give(class, rest);
                }
            }
            while (*cache).is_over(class) {
                self.flush(cache, class);
            }
        }
    }

    /// An object for an empty list, if a turn brings some; else null.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap.
    #[inline]
    pub unsafe fn turn_for(&self, cache: *mut ThreadCache, class: usize) -> *mut u8 {
        // SAFETY: the cache is this thread's.
        unsafe {
            if !(*cache).is_empty(class) || !(*cache).may_turn(class) {
                return null_mut();
            }
            let pops = Self::expect_count(&mut *cache, class);
            (*cache).count_turn::<H>(class, pops, wait(class));
            (*cache).turn::<H>(class);
            ThreadCache::pop_own(cache, class)
        }
    }

    /// Frees an object into a cache, flushing if the list is full.
    ///
    /// # Safety
    /// `cache` is this thread's, of this heap. The object is of the class, checked, and given up.
    unsafe fn take_into(&self, cache: *mut ThreadCache, class: usize, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe {
            let stays_empty = (*cache).is_full(class)
                && if (*cache).is_hardened() {
                    if self.turn_over(cache, class) {
                        self.end_turn(cache, class);
                    }
                    (*cache).is_full(class)
                } else {
                    self.make_room(cache, class)
                };
            if stays_empty || !ThreadCache::push_checked(cache, class, object) {
                self.give_one(class, object);
            }
        }
    }

    /// Flushes a whole cache to the slabs.
    ///
    /// # Safety
    /// No other thread uses `cache`, which is of this heap.
    pub unsafe fn empty_cache(&self, cache: *mut ThreadCache) {
        for class in 1..=size_class::CLASSES {
            // SAFETY: as in `make_room`.
            unsafe {
                (*cache).end_waits::<H>(class, |waited| self.give(class, waited));
                (*cache).forgo::<H>(class);
                let chain = (*cache).drain::<H>(class, u32::MAX);
                self.give(class, chain);
            }
        }
    }

    /// Frees an object that the fast path refused, or reports it; returns a private heap's object.
    ///
    /// # Safety
    /// `cache`, if any, is the calling thread's, of this heap. The caller gives the object up.
    pub unsafe fn take_back(&self, cache: Option<*mut ThreadCache>, pointer: *mut u8) -> Result<Option<Owned>, Misuse> {
        // SAFETY: the cache is this thread's. It recognised the object, so its list was full.
        unsafe {
            if let Some(cache) = cache
                && let Some((class, _)) = ThreadCache::recognise(cache, pointer)
            {
                self.take_into(cache, class, pointer);
                return Ok(None);
            }
        }
        match self.find(pointer) {
            Found::Small { class } => {
                // SAFETY: `find` has checked the object, and the cache is this thread's.
                unsafe {
                    match cache {
                        None => self.give_one(class, pointer),
                        Some(cache) => {
                            (*cache).look_again(self.view(), &self.flush_requests);
                            self.take_into(cache, class, pointer);
                        }
                    }
                }
                Ok(None)
            }
            // SAFETY: `find` has checked the object, and the caller gives it up.
            Found::Old { class } => unsafe { self.give_old(class, pointer) }.map(|()| None),
            Found::Large { first, .. } => {
                if let Some(span) = self.give_large(first) {
                    self.give_span(span);
                }
                Ok(None)
            }
            Found::Owned(object) => Ok(Some(object)),
            Found::Huge(entry) => self.free_huge(entry.at).map(|()| None),
            Found::Bad(misuse) => Err(misuse),
        }
    }

    /// Frees an object of the class that its slab had before it morphed.
    ///
    /// # Safety
    /// The caller gives the object up.
    pub unsafe fn give_old(&self, class: usize, object: *mut u8) -> Result<(), Misuse> {
        let freed = Misuse::Freed { size: size_class::size_of_class(class) };
        let page = self.page_of(object as usize).ok_or(Misuse::Foreign)?;
        if self.is_hardened() {
            // SAFETY: by the contract; link and mark are written when the place is free.
            unsafe { mark::clear(object, size_class::size_of_class(class)) };
        }
        // SAFETY: by the contract. A live object keeps its slab; else two frees race.
        let known = unsafe { self.give_mixed(object, page) };
        known.filter(|given| *given).map(|_| ()).ok_or(freed)
    }
}
