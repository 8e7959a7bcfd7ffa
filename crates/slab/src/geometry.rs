//! How objects of a size are laid out on a slab.

use craton_base::{Bytes, Density, PAGE_SIZE, PageId, Pages};

/// Largest slab with several objects, in pages: 256 KiB.
const MAX_PAGES: u32 = 32;
/// Objects that a slab should hold, where that needs no more than [`COMFORTABLE_PAGES`].
const COMFORTABLE_OBJECTS: usize = 8;
const COMFORTABLE_PAGES: u32 = 8;
/// A slab's tail may waste one part in this many.
const WASTE_PART: usize = 16;

/// Sizes of a slab and of its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes in an object; a multiple of 16.
    pub object: u32,
    /// Pages in a slab: a power of two, aligned to itself, when it holds several objects.
    pub pages: Pages,
    /// Objects in a slab, at least 1.
    pub capacity: u16,
}

impl Geometry {
    /// The layout for objects of `object` bytes, a multiple of 16 and not 0.
    ///
    /// Up to 32 KiB: the smallest power of two of pages (at most 32) that wastes at most a sixteenth at its end and
    /// holds 8 objects, if 8 pages are enough for that. Beyond: one object of whole pages, which the page heap packs better
    /// than any slab could.
    pub const fn of(object: usize) -> Self {
        assert!(object > 0 && object.is_multiple_of(16));
        if object > 4 * PAGE_SIZE {
            let pages = match Bytes(object).pages_up() {
                Some(pages) => pages,
                None => panic!("object too large for a slab"),
            };
            return Self { object: object as u32, pages, capacity: 1 };
        }
        let mut pages = 1;
        while pages < MAX_PAGES {
            let span = pages as usize * PAGE_SIZE;
            let fits = span / object;
            let comfortable = fits >= COMFORTABLE_OBJECTS || (pages >= COMFORTABLE_PAGES && fits > 0);
            if comfortable && (span % object) * WASTE_PART <= span {
                break;
            }
            pages *= 2;
        }
        let capacity = (pages as usize * PAGE_SIZE / object) as u16;
        Self { object: object as u32, pages: Pages(pages), capacity }
    }

    /// Whether a slab holds one object only, of whole pages.
    pub const fn is_single(&self) -> bool {
        self.capacity == 1
    }

    /// First page of the slab that holds an object which lies on `page`: a slab of several objects is aligned to its size, one of a
    /// single object begins where the object does.
    #[inline]
    pub const fn slab_of(&self, page: PageId) -> PageId {
        PageId(if self.is_single() { page.0 } else { page.0 & !(self.pages.0 - 1) })
    }

    /// How many objects share a span: more than 16 make it dense (DESIGN of the page heap).
    pub const fn density(&self) -> Density {
        if self.capacity > 16 { Density::Dense } else { Density::Sparse }
    }

    /// Bytes at a slab's end that no object covers.
    pub const fn tail_waste(&self) -> usize {
        self.pages.bytes().0 - self.capacity as usize * self.object as usize
    }
}
