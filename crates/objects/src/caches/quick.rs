//! The fast paths: 30 instructions to allocate, 43 to free; 40 and 46 with marks in pages' entries.
//!
//! **Unsafe.** Marks objects, reads arrays and entries by address.

use super::cache::{CacheSlots, marks_elsewhere, marks_in_entries};
use super::pages::Entry;
use super::{Caches, Over, arrays};
use crate::process::{Process, Watch};
use crate::slots::{SLOT_ALIGN, Slot};
use core::sync::atomic::Ordering::Relaxed;
use craton_base::{Clock, Platform};
use craton_heap::hooks::Hooks;
use craton_heap::size_class::OWNED;
use craton_os::rseq::Rseq;

impl<C: Clock, P: Process + Watch> Caches<C, P> {
    /// Null: this processor's array is empty, or the handle is bad.
    /// # Safety
    /// `areas` is this thread's [`crate::process::Words::arrays`], above `NONE`, of these caches.
    #[inline(always)]
    pub unsafe fn pop(&self, rseq: &Rseq, areas: usize, handle: usize) -> *mut u8 {
        // SAFETY: the thread may use the areas, which have an array for every word.
        let object = unsafe { rseq.pop_counted(areas + arrays::place(handle), handle) };
        if !object.is_null() {
            if marks_elsewhere(handle) {
                self.clear_mark_elsewhere(handle, object);
            } else {
                // SAFETY: the object is now this thread's; its mark is its first word.
                unsafe { object.cast::<usize>().write(0) };
            }
        }
        object
    }

    #[inline(always)]
    fn clear_mark_elsewhere(&self, handle: usize, object: *mut u8) {
        if marks_in_entries(handle) {
            // SAFETY: the thread has used a cache; the object is on a cache's page.
            return unsafe { self.entries.of_object(object) }.clear_mark(object);
        }
        // SAFETY: an array's owner is a living cache; the slot places its mark.
        unsafe {
            let slot = &*((handle & !(SLOT_ALIGN - 1)) as *const Slot<CacheSlots>);
            object.add(slot.shared.mark_at.load(Relaxed)).cast::<usize>().write(0);
        }
    }
}

impl<F: Platform, C: Clock, H: Hooks, P: Process + Watch> Over<'_, F, C, H, P> {
    /// `false`: no room, or no live object of the cache.
    /// # Safety
    /// As [`Over::free`], unless `false`; and as [`Caches::pop`].
    #[inline(always)]
    pub unsafe fn push(&self, rseq: &Rseq, areas: usize, handle: usize, object: *mut u8) -> bool {
        // SAFETY: a thread with areas has used a cache.
        let Some(entry) = (unsafe { self.caches.entries.known(object as usize) }) else { return false };
        if !entry.is_start_of(handle, object as usize) {
            return false;
        }
        // One load gives any cache's mark; a test for the usual place would add a jump for all.
        if !entry.mark_free(self.heap.seal(OWNED.into()), object) {
            return false;
        }
        // SAFETY: as in `pop`.
        if unsafe { rseq.push_counted(areas + entry.array_at.load(Relaxed), object) } {
            return true;
        }
        self.unmark(entry, object)
    }

    #[cold]
    fn unmark(&self, entry: &Entry, object: *mut u8) -> bool {
        entry.set_mark(self.heap.seal(OWNED.into()), object, false);
        false
    }
}
