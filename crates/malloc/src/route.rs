//! The paths behind the fast one: which layer serves a request, and what a pointer is.
//!
//! **From.** TEMERAIRE §3. Up to 256 KiB a size class; beyond, whole pages of the page heap; from 32 MiB on, or when the
//! region has no room, a mapping of its own.
//!
//! **Unsafe.** Touches objects that a cache or a caller gives up, and clears memory just allocated.

use crate::cpu_cache::thread::{ThreadCache, mark};
use crate::heap::Heap;
use crate::huge::Entry;
use crate::segment::{self, SEGMENT};
use crate::size_class::{self, LARGE, MAX_CLASSED};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Bytes, Clock, Floor, HUGEPAGE_SIZE, PAGE_SIZE, PageId, Pages};
use craton_os::{mapping, process};
use craton_slab::Chain;

/// Objects of this size and more are mappings of their own: they can grow by moving page tables, and a few faults more do not
/// count against touching so much memory. It is also where glibc's own threshold ends.
pub(crate) const HUGE_MIN: usize = 32 << 20;

/// What a pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// An object of a size class.
    Small { class: usize },
    /// A large object, by its first page and length.
    Large { first: PageId, pages: Pages },
    /// A huge object.
    Huge(Entry),
    /// None of ours, or not the start of one.
    Bad(Misuse),
}

impl Found {
    /// Bytes that may be used, or what is wrong.
    pub(crate) fn usable(self) -> Result<usize, Misuse> {
        match self {
            Self::Small { class } => Ok(size_class::size_of_class(class)),
            Self::Large { pages, .. } => Ok(pages.bytes().0),
            Self::Huge(entry) => Ok(entry.bytes),
            Self::Bad(misuse) => Err(misuse),
        }
    }
}

/// What is wrong with a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The object is free already.
    Freed {
        /// Bytes of the object.
        size: usize,
    },
    /// It points into an object.
    Inside {
        /// Bytes from the object's start.
        offset: usize,
        /// Bytes of the object.
        size: usize,
    },
    /// It points into a large or huge object.
    InsideLarge {
        /// Where the object starts.
        start: usize,
        /// Bytes of the object.
        size: usize,
    },
    /// It points into the region where nothing is allocated.
    Unallocated,
    /// It is none of ours.
    Foreign,
}

impl<F: Floor, C: Clock> Heap<F, C> {
    /// An object of a class whose list has run empty: refills the list. Null when there is no memory.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap, and the class's list is empty.
    pub(crate) unsafe fn refill(&self, cache: *mut ThreadCache, class: usize) -> *mut u8 {
        // SAFETY: the cache is this thread's.
        let cache = unsafe { &mut *cache };
        let mut chain = self.take(class, cache.want(class));
        let object = chain.pop().unwrap_or(null_mut());
        cache.fill(class, chain);
        // The slabs may have grown the heap; the cache should know what it has just been given.
        cache.look_again(self.view());
        self.wipe_mark(object)
    }

    /// An object without a cache. Null when there is no memory.
    pub(crate) fn take_one(&self, class: usize) -> *mut u8 {
        let object = self.take(class, 1).pop().unwrap_or(null_mut());
        self.wipe_mark(object)
    }

    /// Makes a free object one that is out.
    fn wipe_mark(&self, object: *mut u8) -> *mut u8 {
        if !object.is_null() {
            // SAFETY: objects have at least 16 bytes, and this one is ours until we return it.
            unsafe { object.cast::<usize>().add(1).write(0) };
        }
        object
    }

    /// Gives back an object that no cache took, without one.
    ///
    /// # Safety
    /// The object is one of `class`, checked, and given up by the caller.
    pub(crate) unsafe fn give_one(&self, class: usize, object: *mut u8) {
        let mut chain = Chain::EMPTY;
        // SAFETY: by the contract; the mark makes a second free visible.
        unsafe {
            chain.push(object);
            object.cast::<usize>().add(1).write(mark(self.view().key, object));
            self.give(class, chain);
        }
    }

    /// Makes room in a full list of the cache.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap.
    pub(crate) unsafe fn make_room(&self, cache: *mut ThreadCache, class: usize) {
        // SAFETY: the cache is this thread's, and the chain holds objects of the class that its list gave up.
        unsafe {
            let chain = (*cache).overflow(class);
            self.give(class, chain);
        }
    }

    /// Gives everything in a cache back to the slabs.
    ///
    /// # Safety
    /// Nobody else uses `cache`, which is of this heap.
    pub(crate) unsafe fn empty_cache(&self, cache: *mut ThreadCache) {
        for class in 1..=size_class::CLASSES {
            // SAFETY: as in `make_room`.
            unsafe {
                let chain = (*cache).drain(class, u32::MAX);
                self.give(class, chain);
            }
        }
    }

    /// An object of more than [`MAX_CLASSED`] bytes, or of an alignment that no class has; zeroed if `zero`. Null when there is
    /// no memory. `align` is a power of two.
    pub(crate) fn allocate_large(&self, size: usize, align: usize, zero: bool) -> *mut u8 {
        if align > HUGEPAGE_SIZE {
            // The region itself begins at no more than a hugepage's boundary.
            return self.allocate_huge(size, align);
        }
        if size >= HUGE_MIN {
            // The region is the second choice: it has the address space that a limit may have left us.
            let object = self.allocate_huge(size, align);
            return if object.is_null() { self.allocate_span(size, align, zero) } else { object };
        }
        let object = self.allocate_span(size, align, zero);
        if object.is_null() { self.allocate_huge(size, align) } else { object }
    }

    fn allocate_span(&self, size: usize, align: usize, zero: bool) -> *mut u8 {
        let align_pages = Bytes(align).pages_up().filter(|p| p.0.is_power_of_two()).unwrap_or(Pages(1));
        let Some(pages) = Bytes(size).pages_up() else { return null_mut() };
        let Ok(span) = self.take_large(Pages(pages.0.max(1)), align_pages) else { return null_mut() };
        let object = self.address(span.range.first);
        if zero && !span.zeroed {
            // SAFETY: the span is ours and holds `size` bytes.
            unsafe { object.write_bytes(0, size) };
        }
        object
    }

    /// A mapping of its own, which reads as zeros.
    fn allocate_huge(&self, size: usize, align: usize) -> *mut u8 {
        let Some(bytes) = size.max(1).checked_next_multiple_of(process::page_size()) else { return null_mut() };
        let mut table = self.huge.lock();
        if table.prepare().is_err() {
            return null_mut();
        }
        // On the boundary of a hugepage all of it can be huge.
        let wish = if bytes >= HUGE_MIN { align.max(HUGEPAGE_SIZE) } else { align };
        let Some(at) = mapping::map(bytes, wish).or_else(|| mapping::map(bytes, align)) else { return null_mut() };
        table.insert(Entry { at, bytes });
        drop(table);
        if self.backs_huge() {
            mapping::advise_huge(at, bytes);
        }
        self.count_huge(bytes as u64, 0);
        segment::add(&SEGMENT.huge_allocs, 1);
        at as *mut u8
    }

    fn backs_huge(&self) -> bool {
        self.pages.lock().backing() != craton_pages::HugeBacking::NEVER
    }

    fn count_huge(&self, more: u64, less: u64) {
        SEGMENT.huge_bytes.fetch_add(more.wrapping_sub(less), Relaxed);
    }

    /// What a pointer is; touches no memory behind it but an object's mark.
    pub(crate) fn find(&self, pointer: *mut u8) -> Found {
        let address = pointer as usize;
        let Some(page) = self.page_of(address) else {
            let table = self.huge.lock();
            return match (table.find(address), table.around(address)) {
                (Some(entry), _) => Found::Huge(entry),
                (None, Some(e)) => Found::Bad(Misuse::InsideLarge { start: e.at, size: e.bytes }),
                (None, None) => Found::Bad(Misuse::Foreign),
            };
        };
        match self.mark(page) {
            LARGE if address.is_multiple_of(PAGE_SIZE) => Found::Large { first: page, pages: self.large_pages(page) },
            0 | LARGE => Found::Bad(self.inside_span(page)),
            class => self.find_small(address, page, class as usize),
        }
    }

    fn find_small(&self, address: usize, page: PageId, class: usize) -> Found {
        let g = size_class::geometry(class);
        let size = g.object as usize;
        let start = page.0 & !(g.align().0 - 1);
        let offset = address - self.address(PageId(start)) as usize;
        if !offset.is_multiple_of(size) || offset / size >= g.capacity as usize {
            let offset = offset % size;
            return Found::Bad(Misuse::Inside { offset, size });
        }
        if offset / size >= self.cut_objects(PageId(start)) {
            return Found::Bad(Misuse::Unallocated);
        }
        // SAFETY: the pointer is an object's start, and objects of a class are always readable.
        if unsafe { (address as *const usize).add(1).read() } == mark(self.view().key, address as *mut u8) {
            return Found::Bad(Misuse::Freed { size });
        }
        Found::Small { class }
    }

    fn inside_span(&self, page: PageId) -> Misuse {
        match self.span_around(page) {
            Some((span, _)) => {
                Misuse::InsideLarge { start: self.address(span.first) as usize, size: span.len.bytes().0 }
            }
            None => Misuse::Unallocated,
        }
    }

    /// Takes back an object that the cache's fast path refused, or says what is wrong with the pointer.
    ///
    /// # Safety
    /// `cache`, if there is one, is the calling thread's, of this heap. The caller gives the object up.
    pub(crate) unsafe fn take_back(&self, cache: Option<*mut ThreadCache>, pointer: *mut u8) -> Result<(), Misuse> {
        match self.find(pointer) {
            Found::Small { class } => {
                let Some(cache) = cache else {
                    // SAFETY: `find` has checked the object.
                    unsafe { self.give_one(class, pointer) };
                    return Ok(());
                };
                // SAFETY: the cache is this thread's; the object was checked.
                unsafe {
                    (*cache).look_again(self.view());
                    if !ThreadCache::push(cache, pointer) {
                        // The pointer is good, so the list was full.
                        self.make_room(cache, class);
                        if !ThreadCache::push(cache, pointer) {
                            self.give_one(class, pointer);
                        }
                    }
                }
                Ok(())
            }
            Found::Large { first, .. } => {
                self.give_large(first);
                Ok(())
            }
            Found::Huge(Entry { at, bytes }) => {
                // Two threads may free it at once: the table gives it to one.
                let Some(_) = self.huge.lock().remove(at) else { return Err(Misuse::Foreign) };
                self.count_huge(0, bytes as u64);
                mapping::unmap(at, bytes);
                Ok(())
            }
            Found::Bad(misuse) => Err(misuse),
        }
    }

    /// Changes an object's size where it stands, or, if it is huge, by moving its page tables. `None`: it must be copied.
    pub(crate) fn resize(&self, pointer: *mut u8, found: Found, size: usize) -> Option<*mut u8> {
        match found {
            Found::Small { class } => {
                let old = size_class::size_of_class(class);
                // A shrink by less than half is not worth a copy.
                (size <= old && size > old / 2 || size <= MAX_CLASSED && size_class::class_of(size) == class)
                    .then_some(pointer)
            }
            Found::Large { first, pages } => {
                let new = Bytes(size).pages_up()?;
                if new == pages {
                    return Some(pointer);
                }
                if size <= MAX_CLASSED / 2 || size >= HUGE_MIN {
                    return None;
                }
                self.resize_large(first, new).ok().map(|()| pointer)
            }
            Found::Huge(entry) => {
                if size < HUGE_MIN / 2 {
                    return None;
                }
                self.resize_huge(entry, size)
            }
            Found::Bad(_) => None,
        }
    }

    fn resize_huge(&self, entry: Entry, size: usize) -> Option<*mut u8> {
        let bytes = size.checked_next_multiple_of(process::page_size())?;
        if bytes == entry.bytes {
            return Some(entry.at as *mut u8);
        }
        // The lock is held over the move, so that nobody sees an address that is no more ours.
        let mut table = self.huge.lock();
        table.prepare().ok()?;
        let at = mapping::remap(entry.at, entry.bytes, bytes)?;
        table.remove(entry.at);
        table.insert(Entry { at, bytes });
        drop(table);
        self.count_huge(bytes as u64, entry.bytes as u64);
        Some(at as *mut u8)
    }
}
