use craton_base::{Density, PAGE_SIZE, PageId, Pages};

const MAX_PAGES: u32 = 32;
/// Each used class has a partial slab, which costs small programs.
const LEAST: usize = 2;
const WASTE_PART: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    pub object: u32,
    /// Several objects align it to the next power of two.
    pub pages: Pages,
    pub capacity: u16,
}

impl Geometry {
    /// The smallest power of two of pages that wastes at most 1/32 and holds 2 objects of `object`
    /// bytes, a multiple of 16 up to 32 KiB.
    pub const fn of(object: usize) -> Self {
        assert!(object > 0 && object <= MAX_PAGES as usize * PAGE_SIZE / 8 && object.is_multiple_of(16));
        let mut pages = 1;
        while pages < MAX_PAGES {
            let span = pages as usize * PAGE_SIZE;
            if span / object >= LEAST && (span % object) * WASTE_PART <= span {
                break;
            }
            pages *= 2;
        }
        let capacity = (pages as usize * PAGE_SIZE / object) as u16;
        Self { object: object as u32, pages: Pages(pages), capacity }
    }

    pub const fn parts(pages: u32, capacity: u16) -> Self {
        let object = pages as usize * PAGE_SIZE / capacity as usize / 16 * 16;
        Self { object: object as u32, pages: Pages(pages), capacity }
    }

    pub const fn align(&self) -> Pages {
        if self.is_single() { Pages(1) } else { Pages(self.pages.0.next_power_of_two()) }
    }

    pub const fn is_single(&self) -> bool {
        self.capacity == 1
    }

    #[inline]
    pub const fn slab_of(&self, page: PageId) -> PageId {
        PageId(page.0 & !(self.align().0 - 1))
    }

    pub const fn density(&self) -> Density {
        if self.capacity > 16 { Density::Dense } else { Density::Sparse }
    }

    pub const fn tail_waste(&self) -> usize {
        self.pages.bytes().0 - self.capacity as usize * self.object as usize
    }
}
