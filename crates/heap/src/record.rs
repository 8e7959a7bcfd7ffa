//! What the heap knows of each page of its region.
//!
//! **State.** A slab's record, of which the front end's words are
//! ```text
//! word (4): pages of the span that begins here; with its highest bit, of the large object that began here and was freed
//! byte (1): shard that the slab belongs to
//! tag:      number of the heap of its own (16 bits) and class (8 bits) of a page that the page map marks so
//! ```
//! A large object is a slab of one object, on no list of slabs: a heap of its own links its large
//! objects instead.
//!
//! **Unsafe.** Declares that zeros are a valid record.

use core::mem::offset_of;
use craton_base::atomic::Ordering;
use craton_base::{Pages, Zeroed};
use craton_slab::SlabRecord;

/// The record of one page.
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

/// Where the class stands in the tag.
const CLASS_SHIFT: u32 = 16;
/// The bit that says that the pages were freed.
const GONE: u32 = 1 << 31;

impl PageRecord {
    /// Where what lies, and how words are divided, for those who read the memory of another
    /// process.
    pub const SHAPE: [(&'static str, usize); 4] = [
        ("record.pages", offset_of!(SlabRecord, front_word)),
        ("record.owner", offset_of!(SlabRecord, front_byte)),
        ("record.owned_class_shift", CLASS_SHIFT as usize),
        ("record.gone_bit", GONE as usize),
    ];

    /// Which of a class's caches the slab belongs to.
    #[inline]
    pub fn owner(&self) -> usize {
        // ORDERING: Acquire pairs with the Release in `set_owner`: who sees the owner of a slab
        // that has gone to another size, and has only that owner's lock for the old size, sees that
        // the slab has gone.
        self.0.front_byte.load(Ordering::Acquire).into()
    }

    /// Notes which of a class's caches the slab belongs to, before it hands anything out.
    pub fn set_owner(&self, owner: usize) {
        // ORDERING: Release pairs with the Acquire in `owner`.
        self.0.front_byte.store(owner as u8, Ordering::Release);
    }

    /// Length of the span; 0 when no span begins here.
    #[inline]
    pub fn pages(&self) -> Pages {
        let pages = self.0.front_word.load(Ordering::Relaxed);
        Pages(if pages & GONE == 0 { pages } else { 0 })
    }

    /// Notes that a span of so many pages begins here, or, with 0, that none does any more.
    #[inline]
    pub fn set_pages(&self, pages: Pages) {
        self.0.front_word.store(pages.0, Ordering::Relaxed);
    }

    /// Length of the large object that began here last, if it was freed and nothing has begun here
    /// since.
    pub fn gone(&self) -> Option<Pages> {
        let pages = self.0.front_word.load(Ordering::Relaxed);
        (pages & GONE != 0).then_some(Pages(pages & !GONE))
    }

    /// Notes that the large object of so many pages that began here does no more.
    #[inline]
    pub fn set_gone(&self, pages: Pages) {
        self.0.front_word.store(pages.0 | GONE, Ordering::Relaxed);
    }

    /// Notes which heap of its own this page's objects belong to, and their class; for pages that
    /// the page map marks so.
    pub fn set_heap(&self, heap: u16, class: u8) {
        self.0.set_tag(u32::from(class) << CLASS_SHIFT | u32::from(heap));
    }

    /// What [`PageRecord::set_heap`] noted.
    #[inline]
    pub fn heap(&self) -> (u16, u8) {
        let tag = self.0.tag();
        (tag as u16, (tag >> CLASS_SHIFT) as u8)
    }

    /// The neighbours of a large object in a list of its heap's: the next one and the one before,
    /// as pages plus 1, or 0.
    pub fn neighbours(&self) -> (u32, u32) {
        self.0.neighbours()
    }

    /// Changes the neighbours of a large object.
    pub fn set_neighbours(&self, next: u32, prev: u32) {
        self.0.set_neighbours(next, prev);
    }

    /// Looks at each field, as a model does before its threads begin.
    #[cfg(loom)]
    pub fn touch(&self) {
        self.0.touch();
        let _ = (self.owner(), self.pages());
    }
}

#[cfg(test)]
mod tests;
