//! Pages of a hugepage: a type parameter of the page heap and of the simulated floor, so that one
//! test binary searches a tiny world to the end and runs the real one. All is constant.

use crate::{HugePageId, HugePages, PageId, PageRange, Pages};
use core::fmt::Debug;
use core::hash::Hash;

/// Sizes of the page heap's parts, and conversions between their units.
pub trait Geometry: Copy + Eq + Default + Hash + Debug + Send + Sync + 'static {
    /// log2 of the pages in a hugepage, 3 to 8.
    const SHIFT: u32;
    /// Hugepages in a region of the page heap, a power of two.
    const REGION: u32;

    /// Pages in a hugepage.
    const PAGES: u32 = 1 << Self::SHIFT;

    /// Whole hugepages that hold these pages.
    #[inline(always)]
    fn hugepages_up(pages: Pages) -> HugePages {
        HugePages(pages.0.div_ceil(Self::PAGES))
    }
    /// The same amount in pages; exact.
    #[inline(always)]
    fn pages(hugepages: HugePages) -> Pages {
        Pages(hugepages.0 * Self::PAGES)
    }
    #[inline(always)]
    fn hugepage(page: PageId) -> HugePageId {
        HugePageId(page.0 / Self::PAGES)
    }
    #[inline(always)]
    fn in_hugepage(page: PageId) -> u32 {
        page.0 % Self::PAGES
    }
    /// The page at a place in a hugepage.
    #[inline(always)]
    fn page(id: HugePageId, at: u32) -> PageId {
        PageId(id.0 * Self::PAGES + at)
    }
    /// `len` pages of a hugepage from place `at` on.
    #[inline(always)]
    fn part(id: HugePageId, at: u32, len: u32) -> PageRange {
        PageRange::new(Self::page(id, at), Pages(len))
    }
    /// `len` hugepages from `id` on, as a run of pages.
    #[inline(always)]
    fn run(id: HugePageId, len: HugePages) -> PageRange {
        PageRange::new(Self::page(id, 0), Self::pages(len))
    }
    #[inline(always)]
    fn range(id: HugePageId) -> PageRange {
        Self::run(id, HugePages(1))
    }
    /// The parts of a range in each hugepage: which, the first page in it, and how many.
    fn parts(range: PageRange) -> impl Iterator<Item = (HugePageId, u32, u32)> {
        let (mut at, end) = (range.first, range.end());
        core::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (id, first) = (Self::hugepage(at), Self::in_hugepage(at));
            let len = (Self::PAGES - first).min(end.0 - at.0);
            at.0 += len;
            Some((id, first, len))
        })
    }
}

/// The machine's: hugepages of 2 MiB, regions of 1 GiB (TEMERAIRE §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Huge2M;

impl Geometry for Huge2M {
    const SHIFT: u32 = 8;
    const REGION: u32 = 512;
}

/// Hugepages of 8 pages, regions of two: a few operations reach every kind of state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Huge64K;

impl Geometry for Huge64K {
    const SHIFT: u32 = 3;
    const REGION: u32 = 2;
}
