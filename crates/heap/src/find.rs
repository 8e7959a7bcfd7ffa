//! Classifies a pointer.
//!
//! **What.** The page map names a page's owner before any memory behind the pointer is read. Then
//! the slab's or span's record, or the table of huge objects, decides.
//!
//! **Threads.** A page marked as morphed needs the table of morphs under its lock, except frees of
//! its new class's objects ([`Heap::recognise_morphed`]). A slab that looks wrong may be changing
//! its class: it is classified again under that lock.
//!
//! **Unsafe.** Reads the marks of objects.

use crate::heap::{Heap, Layout};
use crate::hooks::Hooks;
use crate::huge::Entry;
use crate::mark::Seal;
use crate::misuse::Misuse;
use crate::owned::{CACHE_CLASS, Owned};
use crate::size_class::{self, LARGE, MORPHED, OWNED};
use crate::thread_cache::{FRESH_LISTS, List};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, PAGE_SHIFT, PAGE_SIZE, PageId, Pages, Platform};
use craton_slab::{Place, Starts};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// An object of a size class.
    Small { class: usize },
    /// An object of a size class, on a slab that has morphed to another.
    Old { class: usize },
    /// A large object.
    Large { first: PageId, pages: Pages },
    /// A huge object.
    Huge(Entry),
    /// An object of a private heap or object cache.
    Owned(Owned),
    /// The address is no live object of malloc; the misuse is the reason.
    Bad(Misuse),
}

impl Found {
    /// Usable bytes, or the misuse.
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

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// [`ThreadCache::recognise`](crate::thread_cache::ThreadCache::recognise) without a cache.
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // Only memory that the page map names ours is read.
    pub fn recognise(&self, pointer: *mut u8) -> Option<usize> {
        let page = self.page_of(pointer as usize)?;
        // SAFETY: granted pages have an entry.
        let entry = unsafe { self.layout().map.entry(page.0 as usize) };
        let class = entry.mark() as usize;
        // SAFETY: the table has a list for every mark; an object's (possible) start is readable.
        let out = unsafe { List::starts(&FRESH_LISTS[class], entry, pointer) && !self.marks(class).is_free(pointer) };
        if out { Some(class) } else { self.recognise_from_sample(pointer, self.view().pages).map(|(class, _)| class) }
    }

    /// Classifies a pointer; reads only an object's mark behind it.
    pub fn find(&self, pointer: *mut u8) -> Found {
        let address = pointer as usize;
        let Some(page) = self.page_of(address) else {
            let table = self.huge.lock();
            if let Some(entry) = table.find(address) {
                return Found::Huge(entry);
            }
            return Found::Bad(match table.around(address) {
                Some(e) => Misuse::InsideLarge { start: e.at, size: e.bytes },
                None => table.misuse(address),
            });
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
        if class == CACHE_CLASS {
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

    pub(crate) fn find_small(&self, address: usize, page: PageId, class: usize) -> Found {
        let g = size_class::geometry(class);
        let size = g.object as usize;
        let start = page.0 & !(g.align().0 - 1);
        let offset = address - self.address(PageId(start)) as usize;
        if !offset.is_multiple_of(size) {
            let offset = offset % size;
            return Found::Bad(Misuse::Inside { offset, size });
        }
        if offset / size >= self.cut_objects(PageId(start)) {
            return Found::Bad(Misuse::Unallocated);
        }
        // SAFETY: the pointer is an object's start, and objects of a class are always readable.
        if unsafe { self.marks(class).is_free(address as *mut u8) } {
            return Found::Bad(Misuse::Freed { size });
        }
        Found::Small { class }
    }

    /// The misuse of a pointer inside a span of several pages, or into no object.
    fn not_a_start(&self, address: usize, page: PageId) -> Misuse {
        if let Some((span, _)) = self.span_around(page) {
            return Misuse::InsideLarge { start: self.address(span.first) as usize, size: span.len.bytes().0 };
        }
        let freed = if address.is_multiple_of(PAGE_SIZE) { self.freed_large(page) } else { None };
        freed.unwrap_or(Misuse::Unallocated)
    }

    pub fn find_morphed(&self, pointer: *mut u8, page: PageId) -> Found {
        let morphs = self.morphs.lock();
        let Some(place) = self.look(&morphs, pointer, page) else {
            // It has settled.
            drop(morphs);
            return self.find(pointer);
        };
        let found = match place {
            Place::Old { class, offset: 0 } => Found::Old { class: class.into() },
            Place::New { class, offset: 0, .. } => Found::Small { class: class.into() },
            Place::New { was_old: Some(old), class, offset } => {
                let start = pointer.wrapping_sub(offset);
                return Found::Bad(if self.is_marked(start, old) || self.is_marked(start, class) {
                    Misuse::Freed { size: size_class::size_of_class(old.into()) }
                } else {
                    Misuse::Inside { offset, size: size_class::size_of_class(class.into()) }
                });
            }
            Place::Old { class, offset } | Place::New { class, offset, was_old: None } => {
                return Found::Bad(Misuse::Inside { offset, size: size_class::size_of_class(class.into()) });
            }
            Place::Nothing { was_old: Some(old) } => {
                return Found::Bad(Misuse::Freed { size: size_class::size_of_class(old.into()) });
            }
            Place::Nothing { was_old: None } => return Found::Bad(Misuse::Unallocated),
        };
        match found {
            Found::Old { class } | Found::Small { class } if self.is_marked(pointer, class as u8) => {
                Found::Bad(Misuse::Freed { size: size_class::size_of_class(class) })
            }
            _ => found,
        }
    }

    /// The class and mark of a live object of a morphed slab's new class: nearly all frees on such
    /// slabs. Takes no lock; `pages` is the count of granted ones.
    #[inline(always)]
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // Only memory that the page map names ours is read.
    pub fn recognise_morphed(&self, pointer: *mut u8, pages: usize) -> Option<(usize, usize)> {
        let Layout { base, map, records, .. } = self.layout();
        let offset = (pointer as usize).wrapping_sub(*base);
        let page = offset >> PAGE_SHIFT;
        // SAFETY: granted pages have a mark.
        if page >= pages || unsafe { map.get(page) } != MORPHED {
            return None;
        }
        // Relaxed: a thread got its object on such a page after the table was set.
        let starts = Starts(self.starts.load(Relaxed));
        // SAFETY: granted pages have a record; the table was set before a page was marked so.
        let units = unsafe { starts.new_at(records.get_unchecked(page).as_ref(), offset)? };
        let class = size_class::class_of_units(units);
        let mark = self.seal(class).of(pointer);
        // SAFETY: the object is a slab's, whose objects have at least 16 readable bytes.
        let is_free = unsafe { Seal::may_be_free(pointer, mark) };
        (!is_free).then_some((class, mark))
    }

    /// Whether [`Heap::find`] needs no lock, or only an uncontended one.
    pub fn is_found_at_once(&self, pointer: *mut u8) -> bool {
        self.page_of(pointer as usize)
            .is_some_and(|page| self.mark(page) != MORPHED || self.morphs.try_lock().is_some())
    }

    /// Classifies again: the slab may have been changing its class.
    #[cold]
    pub fn find_again(&self, pointer: *mut u8, page: PageId, class: u8) -> Found {
        let morphs = self.morphs.lock();
        if self.mark(page) == class {
            return self.find_small(pointer as usize, page, class.into());
        }
        drop(morphs);
        self.find(pointer)
    }

    fn is_marked(&self, object: *mut u8, class: u8) -> bool {
        // SAFETY: the object is a slab's, whose objects have at least 16 readable bytes.
        unsafe { self.marks(class.into()).is_free(object) }
    }
}
