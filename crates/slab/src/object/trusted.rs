//! Slabs of one page for records and magazines. Only the cache frees them, so no table is needed.
//!
//! **Unsafe.** Hands out raw memory.

use super::layout::ObjectLayout;
use super::record::{InRecords, Slab, record_inside};
use super::supply::PageSupplier;
use crate::lists::List;

#[derive(Debug)]
pub(super) struct Trusted {
    partial: List<Slab>,
    bytes: usize,
    live: u32,
}

impl Trusted {
    pub(super) const EMPTY: Self = Self { partial: List::EMPTY, bytes: 0, live: 0 };

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn live(&self) -> u32 {
        self.live
    }

    /// `None`: the supplier refused.
    /// # Safety
    /// `layout` is always the same, small and without a constructor.
    pub(super) unsafe fn alloc(&mut self, layout: &ObjectLayout, supplier: &mut impl PageSupplier) -> Option<*mut u8> {
        let slab = match self.partial.first() {
            Some(slab) => slab,
            None => {
                let page = supplier.get(layout.bytes(), layout.slab_align())?;
                // SAFETY: the page has room for the record.
                let slab = unsafe { Slab::begin(layout, page, record_inside(layout, page)?, 0) };
                self.partial.push(slab, &InRecords);
                self.bytes += layout.bytes();
                slab
            }
        };
        // SAFETY: this store's slab, with room.
        let (object, _) = unsafe { slab.alloc(layout) };
        if u32::from(slab.used()) == layout.capacity {
            self.partial.unlink(slab, &InRecords);
        }
        self.live += 1;
        Some(object)
    }

    /// # Safety
    /// As [`Trusted::alloc`], which returned this object; it is given up.
    pub(super) unsafe fn free(&mut self, layout: &ObjectLayout, object: *mut u8, supplier: &mut impl PageSupplier) {
        let page = object.wrapping_sub(object as usize % layout.page_bytes());
        let Some(slab) = record_inside(layout, page).map(Slab) else { return };
        let was_full = u32::from(slab.used()) == layout.capacity;
        let place = slab.place_of(layout, object as usize);
        // SAFETY: a live object of this store.
        let given = place.is_ok_and(|i| unsafe { slab.free(layout, i, false) });
        debug_assert!(given, "{object:?} is not out");
        self.live -= 1;
        if was_full {
            self.partial.push(slab, &InRecords);
        }
        if slab.used() == 0 {
            self.partial.unlink(slab, &InRecords);
            self.bytes -= layout.bytes();
            // SAFETY: nothing on the page is used.
            unsafe { supplier.put(page, layout.bytes()) };
        }
    }
}
