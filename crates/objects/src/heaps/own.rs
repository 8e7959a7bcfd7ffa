//! One heap. No cache is in front: no object lies elsewhere when the heap is destroyed.
//!
//! **Unsafe.** Frees objects, and clears memory just allocated.

use super::pages::{ClassPages, OwnPages, Place};
use super::{NAME_MAX, Over, OwnStats};
use core::ptr::null_mut;
use craton_base::{Bytes, Clock, HUGEPAGE_SIZE, PageId, Pages, Platform};
use craton_heap::Misuse;
use craton_heap::beyond::small_stays;
use craton_heap::hooks::Hooks;
use craton_heap::mark::clear;
use craton_heap::owned::Owned;
use craton_heap::size_class::{self, CLASSES, LARGE, MAX_CLASSED, OWNED};
use craton_slab::{Chain, SlabCache, SlabStats};

pub(super) struct OwnHeap {
    pub(super) pages: OwnPages,
    name: [u8; NAME_MAX + 1],
    refused: u64,
    caches: [SlabCache; CLASSES],
}

impl OwnHeap {
    pub(super) const NAME: usize = core::mem::offset_of!(Self, name);

    pub(super) fn begin(&mut self, id: u16, name: &[u8], place: Place, limit: Pages) {
        self.pages.begin(id, place, limit);
        self.name = [0; NAME_MAX + 1];
        self.name[..name.len()].copy_from_slice(name);
        self.refused = 0;
    }

    pub(super) fn class_stats(&self, class: usize) -> SlabStats {
        self.caches[class - 1].stats()
    }

    pub(super) fn stats(&self) -> OwnStats {
        let classes = (1..=CLASSES).map(|c| (self.class_stats(c).objects_out, size_class::size_of_class(c) as u64));
        let (objects, bytes) = classes.fold((0, 0), |(n, b), (out, size)| (n + out, b + out * size));
        OwnStats {
            id: self.pages.id.into(),
            objects: objects + u64::from(self.pages.large_objects),
            object_bytes: bytes + self.pages.large_pages.bytes().0 as u64,
            used_bytes: self.pages.used.bytes().0 as u64,
            held_bytes: self.pages.held.bytes().0 as u64,
            limit_bytes: self.pages.limit.bytes().0 as u64,
            refused: self.refused,
            name: self.name,
        }
    }
}

impl<F: Platform, C: Clock, H: Hooks> Over<'_, F, C, H> {
    /// Null: no memory, the limit, or an alignment above a hugepage.
    pub(super) fn alloc_in(&self, own: &mut OwnHeap, size: usize, align: usize, zero: bool) -> *mut u8 {
        let object = match class_for(size, align) {
            Some(class) => self.alloc_small(own, class, size, zero),
            None => self.alloc_large(own, size, align, zero),
        };
        own.refused += u64::from(object.is_null());
        object
    }

    fn alloc_small(&self, own: &mut OwnHeap, class: usize, size: usize, zero: bool) -> *mut u8 {
        let cache = &mut own.caches[class - 1];
        if cache.is_unset() {
            *cache = SlabCache::new(size_class::geometry(class));
        }
        let mut source = ClassPages { pages: &mut own.pages, over: self, class };
        let object = self.heap.pop_free(class, &mut self.heap.take_from(cache, class, 1, &mut source));
        if zero && !object.is_null() {
            // SAFETY: `size` bytes, ours until returned.
            unsafe { object.write_bytes(0, size) };
        }
        object
    }

    fn alloc_large(&self, own: &mut OwnHeap, size: usize, align: usize, zero: bool) -> *mut u8 {
        // The region is aligned to a hugepage, no more.
        let align = Bytes(align).pages_up().filter(|_| align <= HUGEPAGE_SIZE);
        let (Some(pages), Some(align)) = (Bytes(size.max(1)).pages_up(), align) else { return null_mut() };
        let Ok(span) = self.alloc_span(&mut own.pages, pages, Pages(align.0.max(1))) else { return null_mut() };
        let object = self.heap.address(span.range.first);
        if zero && !span.zeroed {
            // SAFETY: as above.
            unsafe { object.write_bytes(0, size) };
        }
        object
    }

    fn is_of(&self, page: PageId, id: u16, class: usize) -> bool {
        self.heap.mark(page) == OWNED && self.heap.record(page).heap() == (id, class as u8)
    }

    /// # Safety
    /// The heap found `object`, then one of this heap, at `pointer`; it is given up.
    pub(super) unsafe fn free_in(&self, own: &mut OwnHeap, object: Owned, pointer: *mut u8) -> Result<(), Misuse> {
        // Another thread may have been faster.
        if !self.is_of(object.first, own.pages.id, object.class) {
            return Err(Misuse::Unallocated);
        }
        if object.class == usize::from(LARGE) {
            self.free_span(&mut own.pages, object.first);
            return Ok(());
        }
        let seal = self.heap.seal(object.class);
        let mut chain = Chain::EMPTY;
        // SAFETY: the page is still of the class, so readable; without a free mark the object is
        // ours.
        unsafe {
            if self.heap.is_free(object.class, pointer) {
                return Err(Misuse::Freed { size: object.bytes });
            }
            seal.set(pointer);
            if self.heap.is_hardened() {
                clear(pointer, object.bytes);
            }
            chain.push(pointer);
        }
        let mut source = ClassPages { pages: &mut own.pages, over: self, class: object.class };
        // SAFETY: of this class of this heap, by its page's record.
        let freed = unsafe { self.heap.give_back(&mut own.caches[object.class - 1], object.class, chain, &mut source) };
        freed.map_err(|_| Misuse::Unallocated)
    }

    /// `false`: copy it.
    pub(super) fn resize_in(&self, own: &mut OwnHeap, object: Owned, size: usize) -> bool {
        if object.class != usize::from(LARGE) {
            return small_stays(object.class, size);
        }
        let Some(pages) = Bytes(size).pages_up() else { return false };
        if pages == self.heap.large_pages(object.first) {
            return true;
        }
        size > MAX_CLASSED / 2 && self.resize_span(&mut own.pages, object.first, pages).is_ok()
    }

    pub(super) fn destroy_own(&self, own: &mut OwnHeap) {
        self.free_all_pages(&mut own.pages);
        own.caches.iter_mut().filter(|c| !c.is_unset()).for_each(|c| *c = SlabCache::UNSET);
    }
}

fn class_for(size: usize, align: usize) -> Option<usize> {
    if align > 16 {
        return size_class::class_of_aligned(size, align);
    }
    (size <= MAX_CLASSED).then(|| size_class::class_of(size))
}
