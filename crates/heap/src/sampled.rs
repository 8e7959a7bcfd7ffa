//! Pages with a sample of the heap profile.
//!
//! **What.** A sample is an ordinary object in its ordinary place. While it lives, its page's
//! number ([`crate::page_map`]) is the index of its place, so that its free leaves the fast path:
//! ```text
//!  places of a page   0 1 2 … s-1 | s | s+1 … last
//!  number s           fast        | the sample | slow, and known at once not to be it
//! ```
//! So only the frees of the places behind it cost more. The sample is therefore the one of its
//! thread's free objects that lies nearest to the end of its page ([`Heap::place_sample`]); places
//! behind it that were never cut are cut first. A page has one sample at most.
//!
//! **Invariants.** *M8* the number of a class's page is the index of its sample's place while it
//! has one, and else larger than the index of each of its cut places.
//!
//! **Threads.** The number changes under the lock of the slab's class. The sample's free reads it
//! after a synchronising hand-over of the object; for other objects both numbers are right.
//!
//! **Failure.** An object on a morphed slab, or beside another sample, becomes none.
//!
//! **Cost.** 1 page of 64 has a sample, if one object in 512 KiB is one. A free behind it costs
//! some 70 instructions more.
//!
//! **Unsafe.** Reads the marks of objects.

use crate::heap::{Heap, Layout};
use crate::hooks::Hooks;
use crate::mark::{self, Seal};
use crate::page_map::{Entry, PLACE};
use crate::size_class::{self, CLASSES};
use crate::thread_cache::{FRESH_LISTS, List, ThreadCache};
use craton_base::{Clock, PAGE_SHIFT, PAGE_SIZE, PageId, PageRange, Pages, Platform};

/// Free objects among which a sample's place is chosen.
const CHOICE: u32 = 32;

/// A class's page, as it is now.
#[derive(Clone, Copy)]
struct Watched {
    class: usize,
    slab: PageId,
    entry: Entry,
    /// Cut places of the slab, and places that begin on the page or before it.
    cut: u64,
    end: u64,
}

impl Watched {
    fn place(&self, object: *mut u8) -> u64 {
        // SAFETY: the table has a list for every mark.
        unsafe { List::place(&FRESH_LISTS[self.class], object) }
    }

    fn number(&self) -> u64 {
        self.entry.cut() / PLACE
    }

    /// M8.
    fn has_sample(&self) -> bool {
        self.number() < self.cut.min(self.end)
    }
}

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Makes a live small object's page one with a sample; `false` if it cannot be.
    pub fn begin_sample(&self, object: *mut u8) -> bool {
        self.change_number(object, |page| (!page.has_sample()).then(|| page.place(object) / PLACE))
    }

    /// Before the sample is freed; `false` if its page has none.
    pub fn end_sample(&self, object: *mut u8) -> bool {
        let is_it = |page: &Watched| page.has_sample() && page.entry.cut() == page.place(object);
        self.change_number(object, |page| is_it(page).then_some(page.cut))
    }

    /// Exchanges a new object that is to be a sample for the best of its list: most frees then stay
    /// on the fast path.
    ///
    /// # Safety
    /// `cache` is the calling thread's, of this heap; the object is new, of at least 16 bytes.
    pub unsafe fn place_sample(&self, cache: *mut ThreadCache, object: *mut u8) -> *mut u8 {
        let Some(Watched { class, .. }) = self.watched(object) else { return object };
        // SAFETY: the cache is this thread's, and by the contract.
        let cache = unsafe { &mut *cache };
        if cache.is_hardened() {
            return object;
        }
        let mut best = object;
        // The second time without the page of the first choice, which has a sample.
        let mut without = 0;
        for _ in 0..2 {
            // SAFETY: as above.
            best = unsafe { cache.exchange(class, best, CHOICE, without) };
            match self.watched(best) {
                Some(page) if page.has_sample() => without = best as usize >> PAGE_SHIFT,
                Some(page) if page.cut < page.end && self.record(page.slab).as_ref().first_free().is_null() => {
                    best = self.cut_to_end(cache, class, best, page.end - page.cut);
                    break;
                }
                _ => break,
            }
        }
        best
    }

    /// Cuts places that end a page, and exchanges the last one for an object that goes out.
    fn cut_to_end(&self, cache: &mut ThreadCache, class: usize, object: *mut u8, places: u64) -> *mut u8 {
        let mut rest = self.take(cache.home(), class, places as u32);
        let is_better = rest.last() as usize % PAGE_SIZE > object as usize % PAGE_SIZE;
        let (size, marks) = (size_class::size_of_class(class), self.marks(class));
        // SAFETY: the object went out, and has not been used; the chain is ours.
        let last = if is_better { unsafe { rest.exchange_last(object, size, &marks) } } else { None };
        cache.fill(class, rest);
        cache.look_again(self.view(), &self.flush_requests);
        // SAFETY: the object goes out.
        last.inspect(|last| unsafe { mark::clear_head(*last) }).unwrap_or(object)
    }

    fn watched(&self, object: *mut u8) -> Option<Watched> {
        let page = self.page_of(object as usize)?;
        // SAFETY: `page_of` makes granted pages.
        let entry = unsafe { self.layout().map.entry(page.0 as usize) };
        let class = entry.mark() as usize;
        if !(1..=CLASSES).contains(&class) {
            return None;
        }
        let geometry = size_class::geometry(class);
        let slab = geometry.slab_of(page);
        let bytes = (page.0 - slab.0 + 1) as usize * PAGE_SIZE;
        let end = bytes.div_ceil(geometry.object as usize).min(geometry.capacity.into()) as u64;
        Some(Watched { class, slab, entry, cut: self.cut_objects(slab) as u64, end })
    }

    /// Changes the number of an object's page.
    fn change_number(&self, object: *mut u8, change: impl Fn(&Watched) -> Option<u64>) -> bool {
        let Some(page) = self.page_of(object as usize) else { return false };
        loop {
            let class = self.mark(page);
            if !(1..=CLASSES).contains(&class.into()) {
                return false;
            }
            let slab = size_class::geometry(class.into()).slab_of(page);
            let owner = self.record(slab).owner();
            let _alone = self.slabs(owner, class.into());
            // The slab may have morphed before the lock was taken.
            if self.mark(page) != class || self.record(slab).owner() != owner {
                continue;
            }
            let Some(number) = self.watched(object).and_then(|watched| change(&watched)) else { return false };
            // SAFETY: `page_of` makes granted pages; the lock makes the number ours.
            unsafe { self.layout().map.set_cut(PageRange::new(page, Pages(1)), class, number as u16) };
            return true;
        }
    }

    /// The class and mark of a live object behind its page's sample. Takes no lock; `pages` is the
    /// count of granted ones.
    #[inline(always)]
    pub fn recognise_behind_sample(&self, pointer: *mut u8, pages: usize) -> Option<(usize, usize)> {
        self.recognise_if(pointer, pages, |place, entry| place > entry.cut())
    }

    /// As [`Heap::recognise_behind_sample`], or the sample.
    pub fn recognise_from_sample(&self, pointer: *mut u8, pages: usize) -> Option<(usize, usize)> {
        self.recognise_if(pointer, pages, |place, entry| place >= entry.cut())
    }

    #[inline(always)]
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // Only memory that the page map names ours is read.
    fn recognise_if(
        &self,
        pointer: *mut u8,
        pages: usize,
        is_right: impl Fn(u64, Entry) -> bool,
    ) -> Option<(usize, usize)> {
        let Layout { base, map, .. } = self.layout();
        let page = (pointer as usize).wrapping_sub(*base) >> PAGE_SHIFT;
        if page >= pages {
            return None;
        }
        // SAFETY: the page is granted.
        let entry = unsafe { map.entry(page) };
        let class = entry.mark() as usize;
        if !(1..=CLASSES).contains(&class) {
            return None;
        }
        // SAFETY: the table has a list for every mark.
        let place = unsafe { List::place(&FRESH_LISTS[class], pointer) };
        if !is_right(place, entry) {
            return None;
        }
        let slab = size_class::geometry(class).slab_of(PageId(page as u32));
        if place >= self.cut_objects(slab) as u64 * PLACE {
            return None;
        }
        let mark = self.seal(class).of(pointer);
        // SAFETY: the start of a cut place is readable.
        let is_free = unsafe { Seal::may_be_free(pointer, mark) };
        (!is_free).then_some((class, mark))
    }
}
