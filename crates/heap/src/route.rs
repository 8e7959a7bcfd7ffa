//! The paths behind the fast one: which layer serves a request, and what a pointer is.
//!
//! **From.** TEMERAIRE §3. Up to 256 KiB a size class; beyond, whole pages of the page heap; from 32 MiB on, or when the
//! region has no room, a mapping of its own.
//!
//! **Unsafe.** Touches objects that a cache or a caller gives up, and clears memory just allocated.

use crate::thread_cache::{FRESH_LISTS, List, ThreadCache, mark};
use crate::debug;
use crate::heap::Heap;
use crate::heaps::Owned;
use crate::hooks::Hooks;
use crate::huge::Entry;
use crate::report;
use crate::size_class::{self, LARGE, MAX_CLASSED, MORPHED, OWNED};
use core::ptr::null_mut;
use craton_base::{Bytes, Clock, Floor, HUGEPAGE_SIZE, PAGE_SIZE, PageId, Pages};

/// Objects of this size and more are mappings of their own: they can grow by moving page tables, and a few faults more do not
/// count against touching so much memory. It is also where glibc's own threshold ends.
pub const HUGE_MIN: usize = 32 << 20;

/// What a pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// An object of a size class.
    Small { class: usize },
    /// An object of a size class, on a slab that has been taken over by another class.
    Old { class: usize },
    /// A large object, by its first page and length.
    Large { first: PageId, pages: Pages },
    /// A huge object.
    Huge(Entry),
    /// An object of a heap of its own.
    Owned(Owned),
    /// None of ours, or not the start of one.
    Bad(Misuse),
}

impl Found {
    /// Bytes that may be used, or what is wrong.
    pub fn usable(self) -> Result<usize, Misuse> {
        match self {
            Self::Small { class } | Self::Old { class } => Ok(size_class::size_of_class(class)),
            Self::Large { pages, .. } => Ok(pages.bytes().0),
            Self::Huge(entry) => Ok(entry.bytes),
            Self::Owned(object) => Ok(object.bytes),
            Self::Bad(misuse) => Err(misuse),
        }
    }
}

/// What is wrong with a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The object is of another size than the caller says.
    WrongSize {
        /// What the caller says.
        given: usize,
        /// Bytes of the object.
        size: usize,
    },
    /// The object does not lie at a multiple of the alignment that the caller says.
    WrongAlign {
        /// What the caller says.
        given: usize,
    },
    /// It is an object, but not of the heap that it was said to be of.
    OtherHeap,
    /// No heap was ever there.
    NoHeap,
    /// The heap was destroyed.
    HeapDestroyed,
    /// The heap is one of the library's own, which stay.
    HeapStays,
    /// No object cache was ever there.
    NoCache,
    /// The object cache was destroyed.
    CacheDestroyed,
    /// It is an object of an object cache, by its number, and not to be had by this call.
    OfCache {
        /// The cache's number.
        cache: u16,
    },
    /// It is an object of another object cache than the one that it was said to be of.
    OtherCache {
        /// Whose it is.
        its: u16,
        /// Whose it was said to be.
        given: u16,
    },
    /// It is an object of malloc or of a heap, and not of the object cache that it was said to be of.
    NotCached {
        /// Whose it was said to be.
        given: u16,
    },
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

impl<F: Floor, C: Clock, H: Hooks> Heap<F, C, H> {
    /// An object of a class whose list has run empty: refills the list. Null when there is no memory.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap, and the class's list is empty.
    pub unsafe fn refill(&self, cache: *mut ThreadCache, class: usize) -> *mut u8 {
        // SAFETY: the cache is this thread's.
        let cache = unsafe { &mut *cache };
        match cache.miscount(class) {
            0 => {}
            twice @ 1.. => report::given_twice(class, twice.unsigned_abs()),
            lost => report::lost(class, lost.unsigned_abs()),
        }
        let mut chain = self.take(cache.home(), class, debug::bound(class, cache.want(class)));
        let object = chain.pop().unwrap_or(null_mut());
        cache.fill(class, chain);
        // The slabs may have grown the heap; the cache should know what it has just been given.
        cache.look_again(self.view());
        if cache.is_look_due(self.in_use()) {
            self.give_what_lies_idle(cache);
        }
        self.wipe_mark(object)
    }

    /// Gives back what has lain idle in a cache since the heap was smaller.
    #[cold]
    fn give_what_lies_idle(&self, cache: &mut ThreadCache) {
        cache.begin_look(self.in_use());
        for class in 1..=size_class::CLASSES {
            let n = cache.idle(class);
            // SAFETY: the list has so many, and gives them up.
            cache.shorten(class, n, |first| unsafe { self.give_first(class, first, n) });
        }
    }

    /// An object without a cache. Null when there is no memory.
    pub fn take_one(&self, class: usize) -> *mut u8 {
        let object = self.take(0, class, 1).pop().unwrap_or(null_mut());
        self.wipe_mark(object)
    }

    /// Makes a free object one that is out.
    pub fn wipe_mark(&self, object: *mut u8) -> *mut u8 {
        if !object.is_null() {
            // SAFETY: objects have at least 16 bytes, and this one is ours until we return it.
            unsafe { object.cast::<usize>().add(1).write(0) };
        }
        object
    }

    /// Makes an object that is out a free one.
    ///
    /// # Safety
    /// The object is one of a class, and given up.
    pub unsafe fn set_mark(&self, object: *mut u8) {
        // SAFETY: by the contract; objects have at least 16 bytes.
        unsafe { object.cast::<usize>().add(1).write(mark(self.view().key, object)) };
    }

    /// Gives back an object that no cache took, without one.
    ///
    /// # Safety
    /// The object is one of `class`, checked, and given up by the caller.
    pub unsafe fn give_one(&self, class: usize, object: *mut u8) {
        // SAFETY: by the contract; the mark makes a second free visible.
        unsafe {
            self.set_mark(object);
            self.give_marked(class, object);
        }
    }

    /// Makes room in a full list of the cache.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap.
    pub unsafe fn make_room(&self, cache: *mut ThreadCache, class: usize) {
        // SAFETY: the cache is this thread's, and the chain holds objects of the class that its list gave up.
        unsafe {
            let home = (*cache).home();
            let n = (*cache).overflow(class);
            if n == size_class::batch(class) && self.passes_on(home, class) {
                let batch = (*cache).drain(class, n);
                self.pass_on_or_give(home, class, batch);
                return;
            }
            (*cache).shorten(class, n, |first| self.give_first(class, first, n));
        }
    }

    /// Puts an object into a cache, and makes room there if need be.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap. The object is of the class, checked, and given up.
    unsafe fn take_into(&self, cache: *mut ThreadCache, class: usize, object: *mut u8) {
        // SAFETY: by the contract.
        unsafe {
            if (*cache).is_full(class) {
                self.make_room(cache, class);
            }
            if !(*cache).push_checked(class, object) {
                self.give_one(class, object);
            }
        }
    }

    /// Gives everything in a cache back to the slabs.
    ///
    /// # Safety
    /// Nobody else uses `cache`, which is of this heap.
    pub unsafe fn empty_cache(&self, cache: *mut ThreadCache) {
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
    pub fn allocate_large(&self, size: usize, align: usize, zero: bool) -> *mut u8 {
        if align > HUGEPAGE_SIZE {
            // The region itself begins at no more than a hugepage's boundary.
            return self.allocate_huge(size, align, zero);
        }
        if size >= HUGE_MIN {
            // The region is the second choice: it has the address space that a limit may have left us.
            let object = self.allocate_huge(size, align, zero);
            return if object.is_null() { self.allocate_span(size, align, zero) } else { object };
        }
        if self.is_lonely(size, align) {
            let object = self.allocate_huge(size, align, zero);
            if !object.is_null() {
                return object;
            }
        }
        let object = self.allocate_span(size, align, zero);
        if object.is_null() { self.allocate_huge(size, align, zero) } else { object }
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

    /// The class of an object that is out, if the pointer is one of a class: what a thread's cache finds out, without one.
    pub fn recognise(&self, pointer: *mut u8) -> Option<usize> {
        let class = self.mark(self.page_of(pointer as usize)?) as usize;
        // SAFETY: the table has a list for every mark; the pointer is an object's start, or where one would be, so that it is readable.
        let out = unsafe {
            List::starts(&FRESH_LISTS[class], pointer)
                && pointer.cast::<usize>().add(1).read() != mark(self.view().key, pointer)
        };
        out.then_some(class)
    }

    /// What a pointer is; touches no memory behind it but an object's mark.
    pub fn find(&self, pointer: *mut u8) -> Found {
        let address = pointer as usize;
        let Some(page) = self.page_of(address) else {
            let table = self.huge.lock();
            return match (table.find(address), table.around(address)) {
                (Some(entry), _) => Found::Huge(entry),
                (None, Some(e)) => Found::Bad(Misuse::InsideLarge { start: e.at, size: e.bytes }),
                (None, None) => Found::Bad(table.misuse(address)),
            };
        };
        match self.mark(page) {
            LARGE if address.is_multiple_of(PAGE_SIZE) => Found::Large { first: page, pages: self.large_pages(page) },
            0 | LARGE => Found::Bad(self.not_a_start(address, page)),
            MORPHED => self.find_morphed(pointer, page),
            OWNED => self.find_owned(address, page),
            class => match self.find_small(address, page, class as usize) {
                Found::Bad(_) => self.find_again(pointer, page, class),
                found => found,
            },
        }
    }

    fn find_owned(&self, address: usize, page: PageId) -> Found {
        let (heap, class) = self.record(page).heap();
        if class == crate::caches::CLASS {
            return Found::Bad(Misuse::OfCache { cache: heap });
        }
        if class != LARGE {
            return match self.find_small(address, page, class as usize) {
                Found::Small { class } => {
                    Found::Owned(Owned { heap, class, first: page, bytes: size_class::size_of_class(class) })
                }
                bad => bad,
            };
        }
        if !address.is_multiple_of(PAGE_SIZE) {
            return Found::Bad(self.not_a_start(address, page));
        }
        Found::Owned(Owned { heap, class: LARGE.into(), first: page, bytes: self.large_pages(page).bytes().0 })
    }

    pub fn find_small(&self, address: usize, page: PageId, class: usize) -> Found {
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

    /// What a pointer is that points into a span of several pages, or into nothing.
    fn not_a_start(&self, address: usize, page: PageId) -> Misuse {
        if let Some((span, _)) = self.span_around(page) {
            return Misuse::InsideLarge { start: self.address(span.first) as usize, size: span.len.bytes().0 };
        }
        let freed = if address.is_multiple_of(PAGE_SIZE) { self.freed_large(page) } else { None };
        freed.unwrap_or(Misuse::Unallocated)
    }

    /// Takes back an object that the cache's fast path refused, or says what is wrong with the pointer.
    ///
    /// # Safety
    /// `cache`, if there is one, is the calling thread's, of this heap. The caller gives the object up.
    pub unsafe fn take_back(&self, cache: Option<*mut ThreadCache>, pointer: *mut u8) -> Result<(), Misuse> {
        // SAFETY: the cache is this thread's. An object that it recognises and did not take is one that its list has no room for.
        unsafe {
            if let Some(cache) = cache
                && let Some((class, _)) = ThreadCache::recognise(cache, pointer)
            {
                self.take_into(cache, class, pointer);
                return Ok(());
            }
        }
        match self.find(pointer) {
            Found::Small { class } => {
                // SAFETY: `find` has checked the object, and the cache is this thread's.
                unsafe {
                    match cache {
                        None => self.give_one(class, pointer),
                        Some(cache) => {
                            (*cache).look_again(self.view());
                            self.take_into(cache, class, pointer);
                        }
                    }
                }
                Ok(())
            }
            // SAFETY: `find` has checked the object, and the caller gives it up.
            Found::Old { class } => unsafe { self.give_old(class, pointer) },
            Found::Large { first, .. } => {
                self.give_large(first);
                Ok(())
            }
            // SAFETY: `find` has checked the object, which the caller gives up.
            Found::Owned(object) => unsafe { self.heaps.free(self, object, pointer) },
            Found::Huge(entry) => self.free_huge(entry.at),
            Found::Bad(misuse) => Err(misuse),
        }
    }

    /// Changes an object's size where it stands, or, if it is huge, by moving its page tables. `None`: it must be copied.
    pub fn resize(&self, pointer: *mut u8, found: Found, size: usize) -> Option<*mut u8> {
        match found {
            Found::Small { class } | Found::Old { class } => small_stays(class, size).then_some(pointer),
            Found::Large { first, pages } => {
                let new = Bytes(size).pages_up()?;
                if new == pages {
                    return Some(pointer);
                }
                if size <= MAX_CLASSED / 2 {
                    return None;
                }
                if size < HUGE_MIN && self.resize_large(first, new).is_ok() {
                    return Some(pointer);
                }
                if new > pages { self.move_out(first, pages, size) } else { None }
            }
            Found::Owned(object) => self.heaps.resize(self, object, size).then_some(pointer),
            Found::Huge(entry) => self.resize_huge(entry, size),
            Found::Bad(_) => None,
        }
    }
}

/// Whether an object of a class stays where it is when it becomes one of `size` bytes. A shrink by less than half is not worth a copy.
pub fn small_stays(class: usize, size: usize) -> bool {
    let old = size_class::size_of_class(class);
    size <= old && size > old / 2 || size <= MAX_CLASSED && size_class::class_of(size) == class
}
