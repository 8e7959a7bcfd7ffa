//! The heap's record of each page: a slab's record, with these words of the front end.
//! ```text
//! byte: shard of the slab
//! tag:  number (16 bits) and class (8 bits) of the private heap that owns the page
//! ```
//!
//! **Unsafe.** Declares that zeros are a valid record.

use core::mem::offset_of;
use craton_base::Zeroed;
use craton_base::atomic::Ordering;
use craton_slab::SlabRecord;

#[derive(Default, Debug)]
#[repr(transparent)]
pub struct PageRecord(SlabRecord);

// SAFETY: a slab's record of zeros is valid.
unsafe impl Zeroed for PageRecord {}

impl AsRef<SlabRecord> for PageRecord {
    #[inline]
    fn as_ref(&self) -> &SlabRecord {
        &self.0
    }
}

const CLASS_SHIFT: u32 = 16;

impl PageRecord {
    pub const SHAPE: [(&'static str, usize); 2] =
        [("record.owner", offset_of!(SlabRecord, front_byte)), ("record.owned_class_shift", CLASS_SHIFT as usize)];

    #[inline]
    pub fn owner(&self) -> usize {
        // ORDERING: Acquire pairs with the Release in `set_owner`: a reader of a morphed slab's new
        // owner, with that owner's lock for the old class, sees that the slab left.
        self.0.front_byte.load(Ordering::Acquire).into()
    }

    /// Before the slab hands anything out.
    pub fn set_owner(&self, owner: usize) {
        // ORDERING: Release pairs with the Acquire in `owner`.
        self.0.front_byte.store(owner as u8, Ordering::Release);
    }

    pub fn set_heap(&self, heap: u16, class: u8) {
        self.0.set_tag(u32::from(class) << CLASS_SHIFT | u32::from(heap));
    }

    #[inline]
    pub fn heap(&self) -> (u16, u8) {
        let tag = self.0.tag();
        (tag as u16, (tag >> CLASS_SHIFT) as u8)
    }

    /// Neighbours in a private heap's list of large objects, as pages plus 1, or 0.
    pub fn neighbours(&self) -> (u32, u32) {
        self.0.neighbours()
    }

    pub fn set_neighbours(&self, next: u32, prev: u32) {
        self.0.set_neighbours(next, prev);
    }

    /// Loom must see the fields before its threads begin.
    #[cfg(loom)]
    pub fn touch(&self) {
        self.0.touch();
        let _ = self.owner();
    }
}

#[cfg(test)]
mod tests;
