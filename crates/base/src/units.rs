//! Unit types; named functions convert and say how they round. Hugepages here are the machine's,
//! [`Huge2M`]; code over any [`Geometry`] converts by that.

use crate::{Geometry, Huge2M};

/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 13;
/// Bytes in a page, the unit of the page heap (TEMERAIRE §3).
pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
/// log2 of [`HUGEPAGE_SIZE`].
pub const HUGEPAGE_SHIFT: u32 = PAGE_SHIFT + Huge2M::SHIFT;
pub const HUGEPAGE_SIZE: usize = 1 << HUGEPAGE_SHIFT;
pub const PAGES_PER_HUGEPAGE: u32 = 1 << (HUGEPAGE_SHIFT - PAGE_SHIFT);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bytes(pub usize);

/// A number of pages (8 KiB each).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Pages(pub u32);

/// A number of hugepages (2 MiB each).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct HugePages(pub u32);

/// The place of a page in the heap's region; 0 is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PageId(pub u32);

/// The place of a hugepage in the heap's region; 0 is the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct HugePageId(pub u32);

/// A run of pages: the first and how many. An empty run is allowed and covers nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageRange {
    pub first: PageId,
    pub len: Pages,
}

impl Bytes {
    /// Whole pages that hold this many bytes; `None` above `u32::MAX` pages (32 TiB).
    pub const fn pages_up(self) -> Option<Pages> {
        let n = self.0.div_ceil(PAGE_SIZE);
        if n > u32::MAX as usize { None } else { Some(Pages(n as u32)) }
    }
}

impl Pages {
    /// The same amount in bytes; exact.
    pub const fn bytes(self) -> Bytes {
        Bytes((self.0 as usize) << PAGE_SHIFT)
    }
    /// Whole hugepages that hold this many pages.
    pub const fn hugepages_up(self) -> HugePages {
        HugePages(self.0.div_ceil(PAGES_PER_HUGEPAGE))
    }
}

impl HugePages {
    /// The same amount in bytes; exact.
    pub const fn bytes(self) -> Bytes {
        Bytes((self.0 as usize) << HUGEPAGE_SHIFT)
    }
    /// The same amount in pages; exact. Panics in checked builds above 2^24 - 1 hugepages (32 TiB).
    pub const fn pages(self) -> Pages {
        Pages(self.0 * PAGES_PER_HUGEPAGE)
    }
}

impl PageId {
    pub const fn hugepage(self) -> HugePageId {
        HugePageId(self.0 / PAGES_PER_HUGEPAGE)
    }
    /// The place of this page in its hugepage, `0..256`.
    pub const fn in_hugepage(self) -> u32 {
        self.0 % PAGES_PER_HUGEPAGE
    }
    /// Offset of the page's first byte from the start of the region.
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
    /// The first page behind the run.
    pub const fn end(self) -> PageId {
        PageId(self.first.0 + self.len.0)
    }
    pub const fn contains(self, page: PageId) -> bool {
        page.0 >= self.first.0 && page.0 - self.first.0 < self.len.0
    }
}
