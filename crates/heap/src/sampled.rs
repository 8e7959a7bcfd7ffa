//! Pages with a sample of the heap profile.
//!
//! **What.** A sample is an ordinary object in its ordinary place. Its page's number of cut places
//! is 0 while it lives ([`crate::page_map`]), so that each free on the page leaves the fast path,
//! as on a morphed slab; there the process finds out whether it is the sample's. A page has one
//! sample at most, so no count is needed to end it.
//!
//! **Invariants.** *M8* a class's page with cut places has the number 0 exactly while it has a
//! sample.
//!
//! **Threads.** The number changes under the lock of the slab's class. The sample's free reads it
//! after a synchronising hand-over of the object.
//!
//! **Failure.** An object on a morphed slab, or beside another sample, becomes none.
//!
//! **Cost.** 1 page of 64 has a sample, if one object in 512 KiB is one. A free there costs some 90
//! instructions more.
//!
//! **Unsafe.** Reads the marks of objects.

use crate::heap::{Heap, Layout};
use crate::hooks::Hooks;
use crate::mark::Seal;
use crate::page_map::Entry;
use crate::size_class::{self, CLASSES};
use crate::thread_cache::{FRESH_LISTS, List};
use craton_base::{Clock, PAGE_SHIFT, PageId, PageRange, Pages, Platform};

impl<F: Platform, C: Clock, H: Hooks> Heap<F, C, H> {
    /// Makes a live small object's page one with a sample; `false` if it cannot be.
    pub fn begin_sample(&self, object: *mut u8) -> bool {
        self.change_number(object, |entry, _| if entry.cut() == 0 { None } else { Some(0) })
    }

    /// Before the sample is freed; `false` if its page has none.
    pub fn end_sample(&self, object: *mut u8) -> bool {
        self.change_number(object, |entry, cut| if entry.cut() == 0 { Some(cut) } else { None })
    }

    /// Changes the number of an object's page, by its entry and the slab's cut places.
    fn change_number(&self, object: *mut u8, change: impl Fn(Entry, u16) -> Option<u16>) -> bool {
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
            // SAFETY: `page_of` makes granted pages; the lock makes the number ours.
            return unsafe {
                let map = self.layout().map;
                let number = change(map.entry(page.0 as usize), self.cut_objects(slab) as u16);
                number.inspect(|number| map.set_cut(PageRange::new(page, Pages(1)), class, *number)).is_some()
            };
        }
    }

    /// The class and mark of a live object on a page with a sample, perhaps the sample. Takes no
    /// lock; `pages` is the count of granted ones.
    #[inline(always)]
    #[allow(clippy::not_unsafe_ptr_arg_deref)] // Only memory that the page map names ours is read.
    pub fn recognise_near_sample(&self, pointer: *mut u8, pages: usize) -> Option<(usize, usize)> {
        let Layout { base, map, .. } = self.layout();
        let page = (pointer as usize).wrapping_sub(*base) >> PAGE_SHIFT;
        if page >= pages {
            return None;
        }
        // SAFETY: the page is granted.
        let entry = unsafe { map.entry(page) };
        let class = entry.mark() as usize;
        if entry.cut() != 0 || !(1..=CLASSES).contains(&class) {
            return None;
        }
        let slab = size_class::geometry(class).slab_of(PageId(page as u32));
        let cut = entry.with_cut(self.cut_objects(slab) as u16);
        let mark = self.seal(class).of(pointer);
        // SAFETY: the table has a list for every mark; the start of a cut place is readable.
        let is_live = unsafe { List::starts(&FRESH_LISTS[class], cut, pointer) && !Seal::may_be_free(pointer, mark) };
        is_live.then_some((class, mark))
    }
}
