//! One heap of its own: slabs for each size class and large objects, over pages that nobody else has.
//!
//! **Cost.** An object: the heap's lock and a step of its slab; no cache is in front, so that nothing of a heap lies elsewhere when it
//! is destroyed.
//!
//! **Failure.** Null, and everything as before.
//!
//! **Unsafe.** Takes objects back, and clears memory just allocated.

use super::pages::{ClassPages, OwnPages, Place};
use super::{NAME_MAX, OwnStats, Owned};
use crate::cpu_cache::thread::mark;
use crate::heap::Heap;
use crate::hooks::Hooks;
use crate::report;
use crate::route::{Misuse, small_stays};
use crate::size_class::{self, CLASSES, LARGE, MAX_CLASSED};
use core::ptr::null_mut;
use craton_base::{Bytes, Clock, Floor, HUGEPAGE_SIZE, Pages};
use craton_slab::{Chain, SlabCache, SlabStats};

/// A heap of its own; zeros are one that was never used.
pub(crate) struct OwnHeap {
    pub(crate) pages: OwnPages,
    name: [u8; NAME_MAX + 1],
    refused: u64,
    caches: [SlabCache; CLASSES],
}

impl OwnHeap {
    /// Where its name lies in it, in bytes, for those who read the memory of another process.
    pub(crate) const NAME: usize = core::mem::offset_of!(Self, name);

    /// Begins anew as heap `id`.
    pub(crate) fn begin(&mut self, id: u16, name: &[u8], place: Place, limit: Pages) {
        self.pages.begin(id, place, limit);
        self.name = [0; NAME_MAX + 1];
        self.name[..name.len()].copy_from_slice(name);
        self.refused = 0;
    }

    /// An object; null when there is no memory, the limit is reached, or the alignment is above a hugepage.
    pub(crate) fn alloc<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        size: usize,
        align: usize,
        zero: bool,
    ) -> *mut u8 {
        let object = match class_for(size, align) {
            Some(class) => self.alloc_small(under, class, size, zero),
            None => self.alloc_large(under, size, align, zero),
        };
        self.refused += u64::from(object.is_null());
        object
    }

    fn alloc_small<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        class: usize,
        size: usize,
        zero: bool,
    ) -> *mut u8 {
        let cache = &mut self.caches[class - 1];
        if cache.is_unset() {
            *cache = SlabCache::new(size_class::geometry(class));
        }
        let mut source = ClassPages { pages: &mut self.pages, under, class };
        let object = under.take_from(cache, 1, &mut source).pop().unwrap_or(null_mut());
        if zero && !object.is_null() {
            // SAFETY: the object holds `size` bytes and is ours until we return it.
            unsafe { object.write_bytes(0, size) };
        }
        under.wipe_mark(object)
    }

    fn alloc_large<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        size: usize,
        align: usize,
        zero: bool,
    ) -> *mut u8 {
        // The region begins at a hugepage's boundary, and at no larger one.
        let align = Bytes(align).pages_up().filter(|_| align <= HUGEPAGE_SIZE);
        let (Some(pages), Some(align)) = (Bytes(size.max(1)).pages_up(), align) else { return null_mut() };
        let Ok(span) = self.pages.take_large(under, pages, Pages(align.0.max(1))) else { return null_mut() };
        let object = under.address(span.range.first);
        if zero && !span.zeroed {
            // SAFETY: the span is ours and holds `size` bytes.
            unsafe { object.write_bytes(0, size) };
        }
        object
    }

    /// Takes an object back.
    ///
    /// # Safety
    /// `object` describes what lies at `pointer`, which was an object of this heap when it was looked up; the caller gives it up.
    pub(crate) unsafe fn free<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        object: Owned,
        pointer: *mut u8,
    ) -> Result<(), Misuse> {
        // Another thread may have been faster.
        if !under.is_of(object.first, self.pages.id, object.class) {
            return Err(Misuse::Unallocated);
        }
        if object.class == usize::from(LARGE) {
            self.pages.give_large(under, object.first);
            return Ok(());
        }
        let mark = mark(under.view().key, pointer);
        let mut chain = Chain::EMPTY;
        // SAFETY: the page's mark is still that of the class, so that the object's memory is readable, and it is ours if it is not
        // marked as free.
        unsafe {
            if pointer.cast::<usize>().add(1).read() == mark {
                return Err(Misuse::Freed { size: object.bytes });
            }
            pointer.cast::<usize>().add(1).write(mark);
            chain.push(pointer);
        }
        let mut source = ClassPages { pages: &mut self.pages, under, class: object.class };
        // SAFETY: the object is of this class of this heap, by its page's record.
        if let Err(object) = unsafe { under.give_back(&mut self.caches[object.class - 1], chain, &mut source) } {
            report::misuse("free", object, Misuse::Unallocated);
        }
        Ok(())
    }

    /// Changes an object's size where it stands; `false` when it must be copied.
    pub(crate) fn resize<F: Floor, C: Clock, H: Hooks>(
        &mut self,
        under: &Heap<F, C, H>,
        object: Owned,
        size: usize,
    ) -> bool {
        if object.class != usize::from(LARGE) {
            return small_stays(object.class, size);
        }
        let Some(pages) = Bytes(size).pages_up() else { return false };
        if pages == under.large_pages(object.first) {
            return true;
        }
        size > MAX_CLASSED / 2 && self.pages.resize_large(under, object.first, pages).is_ok()
    }

    /// Gives all objects back at once.
    pub(crate) fn destroy<F: Floor, C: Clock, H: Hooks>(&mut self, under: &Heap<F, C, H>) {
        self.pages.give_all(under);
        self.caches.iter_mut().filter(|c| !c.is_unset()).for_each(|c| *c = SlabCache::UNSET);
    }

    /// Counts of one class, `1..=CLASSES`.
    pub(crate) fn class_stats(&self, class: usize) -> SlabStats {
        self.caches[class - 1].stats()
    }

    /// Counts of the heap.
    pub(crate) fn stats(&self) -> OwnStats {
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

/// The class for a size at an alignment; `None` for a large object.
fn class_for(size: usize, align: usize) -> Option<usize> {
    if align > 16 {
        return size_class::class_of_aligned(size, align);
    }
    (size <= MAX_CLASSED).then(|| size_class::class_of(size))
}
