//! Units. Named functions convert, for [`Huge2M`]; code over any [`Geometry`] converts by that.

use crate::{Geometry, Huge2M};

pub const PAGE_SHIFT: u32 = 13;
/// TEMERAIRE §3.
pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
pub const HUGEPAGE_SHIFT: u32 = PAGE_SHIFT + Huge2M::SHIFT;
pub const HUGEPAGE_SIZE: usize = 1 << HUGEPAGE_SHIFT;
pub const PAGES_PER_HUGEPAGE: u32 = 1 << (HUGEPAGE_SHIFT - PAGE_SHIFT);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bytes(pub usize);

/// Of 8 KiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Pages(pub u32);

/// Of 2 MiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct HugePages(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PageId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct HugePageId(pub u32);

/// An empty run covers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageRange {
    pub first: PageId,
    pub len: Pages,
}

impl Bytes {
    /// `None` above `u32::MAX` pages (32 TiB).
    pub const fn pages_up(self) -> Option<Pages> {
        let n = self.0.div_ceil(PAGE_SIZE);
        if n > u32::MAX as usize { None } else { Some(Pages(n as u32)) }
    }
}

impl Pages {
    pub const fn bytes(self) -> Bytes {
        Bytes((self.0 as usize) << PAGE_SHIFT)
    }
    pub const fn hugepages_up(self) -> HugePages {
        HugePages(self.0.div_ceil(PAGES_PER_HUGEPAGE))
    }
}

impl HugePages {
    pub const fn bytes(self) -> Bytes {
        Bytes((self.0 as usize) << HUGEPAGE_SHIFT)
    }
    /// Panics in checked builds above 2^24 - 1 hugepages (32 TiB).
    pub const fn pages(self) -> Pages {
        Pages(self.0 * PAGES_PER_HUGEPAGE)
    }
}

impl PageId {
    pub const fn hugepage(self) -> HugePageId {
        HugePageId(self.0 / PAGES_PER_HUGEPAGE)
    }
    /// `0..256`.
    pub const fn in_hugepage(self) -> u32 {
        self.0 % PAGES_PER_HUGEPAGE
    }
    /// From the region's start.
    pub const fn offset(self) -> Bytes {
        Bytes((self.0 as usize) << PAGE_SHIFT)
    }
}

impl HugePageId {
    pub const fn first_page(self) -> PageId {
        PageId(self.0 * PAGES_PER_HUGEPAGE)
    }
    pub const fn range(self) -> PageRange {
        self.run(HugePages(1))
    }
    pub const fn run(self, len: HugePages) -> PageRange {
        PageRange { first: self.first_page(), len: len.pages() }
    }
}

impl PageRange {
    pub const fn end(self) -> PageId {
        PageId(self.first.0 + self.len.0)
    }
    pub const fn contains(self, page: PageId) -> bool {
        page.0 >= self.first.0 && page.0 - self.first.0 < self.len.0
    }
}
