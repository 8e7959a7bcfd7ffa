//! Pages of a hugepage, as a type parameter: tests search a tiny world to the end.

use crate::{HugePageId, HugePages, PageId, PageRange, Pages};
use core::fmt::Debug;
use core::hash::Hash;

pub trait Geometry: Copy + Eq + Default + Hash + Debug + Send + Sync + 'static {
    /// log2 of a hugepage's pages, 3 to 8.
    const SHIFT: u32;
    /// In hugepages, a power of two.
    const REGION: u32;

    const PAGES: u32 = 1 << Self::SHIFT;

    #[inline(always)]
    fn hugepages_up(pages: Pages) -> HugePages {
        HugePages(pages.0.div_ceil(Self::PAGES))
    }
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
    #[inline(always)]
    fn page(id: HugePageId, at: u32) -> PageId {
        PageId(id.0 * Self::PAGES + at)
    }
    #[inline(always)]
    fn part(id: HugePageId, at: u32, len: u32) -> PageRange {
        PageRange::new(Self::page(id, at), Pages(len))
    }
    #[inline(always)]
    fn run(id: HugePageId, len: HugePages) -> PageRange {
        PageRange::new(Self::page(id, 0), Self::pages(len))
    }
    #[inline(always)]
    fn range(id: HugePageId) -> PageRange {
        Self::run(id, HugePages(1))
    }
    /// As (hugepage, first page in it, pages).
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

/// TEMERAIRE §4.5.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Huge2M;

impl Geometry for Huge2M {
    const SHIFT: u32 = 8;
    const REGION: u32 = 512;
}

/// Few operations reach every state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Huge64K;

impl Geometry for Huge64K {
    const SHIFT: u32 = 3;
    const REGION: u32 = 2;
}
