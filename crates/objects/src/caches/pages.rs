//! Which cache has each page; the source of slabs' pages.
//!
//! An entry for each page of the region. Parts open for writing when a cache gets a page there; the
//! rest, gigabytes, stays out of core files:
//! ```text
//! | cache's handle, once an object on the page went out | slab's first object, layout | 128 marks |
//! ```
//! **Unsafe.** Indexes entries by page, and supplies slabs with spans.

use super::Over;
use super::arrays;
use super::cache::{Cache, CacheSlots, IN_ENTRY};
use crate::process::{Process, Watch};
use crate::slots::Slot;
use core::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use craton_base::{Clock, Density, PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages, Platform};
use craton_heap::Heap;
use craton_heap::hooks::Hooks;
use craton_heap::mark::Seal;
use craton_heap::owned::CACHE_CLASS;
use craton_os::guarded::{self, Opened};
use craton_slab::object::{Depot, ObjectSlabs, PageSupplier};

pub(super) const GRANULE: usize = 64;
const MARKS: usize = PAGE_SIZE / GRANULE;
/// Entries of 256 MiB of the region, which open together.
const PART: usize = 8 << 20;
/// A region has at most 16 TiB.
const PARTS: usize = (16 << 40) / PAGE_SIZE * size_of::<Entry>() / PART;

#[repr(C, align(256))]
pub(super) struct Entry {
    pub(super) cache: AtomicUsize,
    pub(super) first: AtomicUsize,
    /// The least number above 2⁶⁴ / stride: `k * stride * magic` is little more than 0 modulo 2⁶⁴.
    pub(super) magic: AtomicU64,
    /// offset × magic is below this exactly where an object begins that was out once.
    pub(super) bound: AtomicU64,
    pub(super) mark_at: AtomicUsize,
    pub(super) array_at: AtomicUsize,
    pub(super) marks: [AtomicU8; MARKS],
}

fn magic(stride: usize) -> u64 {
    u64::MAX / stride as u64 + 1 + u64::from(stride.is_power_of_two())
}

impl Entry {
    pub(super) fn begin(&self, slot: &Slot<CacheSlots>, cache: &Cache, first: *mut u8) {
        self.first.store(first as usize, Relaxed);
        self.magic.store(magic(cache.layout.stride()), Relaxed);
        self.bound.store(0, Relaxed);
        self.mark_at.store(cache.mark_at, Relaxed);
        self.array_at.store(arrays::place(slot.handle()), Relaxed);
        self.cache.store(slot.handle(), Relaxed);
    }

    /// Admits those before it too: objects first go out in the order of addresses.
    pub(super) fn admit(&self, object: *mut u8) {
        let offset = object as u64 - self.first.load(Relaxed) as u64;
        let product = offset.wrapping_mul(self.magic.load(Relaxed));
        self.bound.store(self.bound.load(Relaxed).max(product + 1), Relaxed);
    }

    /// Also checks the cache.
    #[cfg(all(target_arch = "x86_64", not(feature = "portable"), not(loom)))]
    #[inline(always)]
    pub(super) fn is_start_of(&self, cache: usize, address: usize) -> bool {
        // SAFETY: reads the entry's words, each at once, as operands: Rust would load atomics
        // apart.
        unsafe {
            use core::mem::offset_of;
            core::arch::asm!(
                "cmp qword ptr [{entry} + {its}], {cache}",
                "jne {no}",
                "mov {offset}, {address}",
                "sub {offset}, qword ptr [{entry} + {first}]",
                "imul {offset}, qword ptr [{entry} + {magic}]",
                "cmp {offset}, qword ptr [{entry} + {bound}]",
                "jae {no}",
                entry = in(reg) self, cache = in(reg) cache, address = in(reg) address, offset = out(reg) _,
                its = const offset_of!(Self, cache), first = const offset_of!(Self, first),
                magic = const offset_of!(Self, magic), bound = const offset_of!(Self, bound),
                no = label { return false; },
                options(readonly, nostack),
            );
        }
        true
    }

    #[cfg(not(all(target_arch = "x86_64", not(feature = "portable"), not(loom))))]
    #[inline(always)]
    pub(super) fn is_start_of(&self, cache: usize, address: usize) -> bool {
        let offset = address.wrapping_sub(self.first.load(Relaxed));
        self.cache.load(Relaxed) == cache
            && (offset as u64).wrapping_mul(self.magic.load(Relaxed)) < self.bound.load(Relaxed)
    }

    #[inline(always)]
    pub(super) fn is_marked(&self, seal: Seal, object: *mut u8) -> bool {
        match self.mark_at.load(Relaxed) {
            IN_ENTRY => self.mark(object).load(Relaxed) != 0,
            // SAFETY: the mark's place, on a slab of the cache.
            at => unsafe { object.add(at).cast::<usize>().read() == seal.of(object) },
        }
    }

    /// `false`: was marked.
    #[inline(always)]
    pub(super) fn mark_free(&self, seal: Seal, object: *mut u8) -> bool {
        match self.mark_at.load(Relaxed) {
            IN_ENTRY => {
                let mark = self.mark(object);
                let was_out = mark.load(Relaxed) == 0;
                mark.store(1, Relaxed);
                was_out
            }
            at => {
                // SAFETY: as in `is_marked`; the caller's object.
                unsafe {
                    let (place, mark) = (object.add(at).cast::<usize>(), seal.of(object));
                    let was_out = place.read() != mark;
                    place.write(mark);
                    was_out
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn set_mark(&self, seal: Seal, object: *mut u8, free: bool) {
        match self.mark_at.load(Relaxed) {
            IN_ENTRY => self.mark(object).store(free.into(), Relaxed),
            // SAFETY: as in `is_marked`; the caller's object.
            at => unsafe { object.add(at).cast::<usize>().write(if free { seal.of(object) } else { 0 }) },
        }
    }

    #[inline(always)]
    pub(super) fn clear_mark(&self, object: *mut u8) {
        self.mark(object).store(0, Relaxed);
    }

    #[inline(always)]
    fn mark(&self, object: *mut u8) -> &AtomicU8 {
        &self.marks[object as usize % PAGE_SIZE / GRANULE]
    }
}

pub(super) struct Entries {
    pub(super) first: AtomicUsize,
    base: AtomicUsize,
    pub(super) pages: AtomicUsize,
    open: Opened<{ PARTS / 64 }>,
}

impl Entries {
    pub(super) const fn new() -> Self {
        Self { first: AtomicUsize::new(0), base: AtomicUsize::new(0), pages: AtomicUsize::new(0), open: Opened::new() }
    }

    /// Under the table's lock.
    pub(super) fn reserve<F: Platform, C: Clock, H: Hooks>(&self, heap: &Heap<F, C, H>) -> Option<()> {
        if self.first.load(Relaxed) == 0 {
            let pages = heap.layout().records.len();
            let bytes = pages * size_of::<Entry>();
            debug_assert!(bytes <= PARTS * PART);
            let at = guarded::reserve_zeros(bytes)?;
            self.base.store(heap.layout().base, Relaxed);
            self.first.store(at, Relaxed);
            self.pages.store(pages, Relaxed);
        }
        Some(())
    }

    fn open(&self, first: *mut u8, pages: Pages) -> bool {
        let page = (first as usize - self.base.load(Relaxed)) >> PAGE_SHIFT;
        let parts = page * size_of::<Entry>() / PART..=(page + pages.0 as usize - 1) * size_of::<Entry>() / PART;
        parts.into_iter().all(|part| {
            let bytes = (self.pages.load(Relaxed) * size_of::<Entry>() - part * PART).min(PART);
            self.open.open(part, self.first.load(Relaxed) + part * PART, bytes)
        })
    }

    #[inline(always)]
    pub(super) fn of(&self, address: usize) -> Option<&Entry> {
        let page = address.wrapping_sub(self.base.load(Relaxed)) >> PAGE_SHIFT;
        if page >= self.pages.load(Relaxed) {
            return None;
        }
        let first = self.first.load(Relaxed) as *const Entry;
        // SAFETY: each page of the region has an entry, zeros at first.
        Some(unsafe {
            core::hint::assert_unchecked(!first.is_null());
            &*first.add(page)
        })
    }

    /// # Safety
    /// The thread has used a cache: what is read here was written before.
    #[inline(always)]
    pub(super) unsafe fn known(&self, address: usize) -> Option<&Entry> {
        // SAFETY: constant by the contract. Plain loads become operands.
        unsafe {
            let page = address.wrapping_sub(self.base.as_ptr().read()) >> PAGE_SHIFT;
            if page < self.pages.as_ptr().read() { Some(self.at(page)) } else { None }
        }
    }

    /// # Safety
    /// As [`Entries::known`]; an object of a cache.
    #[inline(always)]
    pub(super) unsafe fn of_object(&self, object: *mut u8) -> &Entry {
        // SAFETY: by the contract.
        unsafe { self.at((object as usize).wrapping_sub(self.base.as_ptr().read()) >> PAGE_SHIFT) }
    }

    /// # Safety
    /// As [`Entries::known`]; there is such a page.
    #[inline(always)]
    unsafe fn at(&self, page: usize) -> &Entry {
        // SAFETY: by the contract.
        unsafe { &*(self.first.as_ptr().read() as *const Entry).add(page) }
    }

    fn forget(&self, first: *mut u8, pages: Pages) {
        for page in 0..pages.0 as usize {
            if let Some(entry) = self.of(first as usize + page * PAGE_SIZE)
                && entry.cache.load(Relaxed) != 0
            {
                entry.cache.store(0, Relaxed);
                entry.bound.store(0, Relaxed);
                entry.marks.iter().for_each(|mark| mark.store(0, Relaxed));
            }
        }
    }
}

fn pages_of(bytes: usize) -> Pages {
    debug_assert!(bytes.is_multiple_of(PAGE_SIZE), "{bytes} bytes are no pages");
    Pages((bytes >> PAGE_SHIFT) as u32)
}

pub(super) struct Supply<'a, F: Platform, C: Clock, H: Hooks> {
    heap: &'a Heap<F, C, H>,
    entries: &'a Entries,
    id: u16,
    limit: Pages,
    held: &'a mut Pages,
}

impl<'a, F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'a, F, C, H, P> {
    pub(super) fn parts<'c>(&self, cache: &'c mut Cache) -> (&'c mut Depot, &'c mut ObjectSlabs, Supply<'c, F, C, H>)
    where
        'a: 'c,
    {
        let (heap, entries) = (self.heap, &self.caches.entries);
        let supply = Supply { heap, entries, id: cache.id, limit: cache.limit_pages, held: &mut cache.held };
        (&mut cache.depot, &mut cache.slabs, supply)
    }
}

// SAFETY: spans have no other owner, and the region's alignment suits any slab.
unsafe impl<F: Platform, C: Clock, H: Hooks> PageSupplier for Supply<'_, F, C, H> {
    fn get(&mut self, bytes: usize, align: usize) -> Option<*mut u8> {
        let (pages, align) = (pages_of(bytes), pages_of(align));
        if self.limit != Pages(0) && u64::from(self.held.0) + u64::from(pages.0) > u64::from(self.limit.0) {
            return None;
        }
        let range = self.heap.take_own(pages, align, Density::Dense).ok()?.range;
        if !self.entries.open(self.heap.address(range.first), pages) {
            self.heap.give_own(range);
            return None;
        }
        self.heap.mark_own(range, true, self.id, CACHE_CLASS);
        self.held.0 += pages.0;
        Some(self.heap.address(range.first))
    }

    unsafe fn put(&mut self, first: *mut u8, bytes: usize) {
        let pages = pages_of(bytes);
        self.entries.forget(first, pages);
        let page = (first as usize - self.heap.layout().base) >> PAGE_SHIFT;
        let range = PageRange::new(PageId(page as u32), pages);
        self.heap.unmark_own(range, true);
        self.held.0 -= pages.0;
        self.heap.give_own(range);
    }
}
