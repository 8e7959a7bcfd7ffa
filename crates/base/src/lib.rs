//! Units, bit sets, metadata tables and the small traits between Craton's layers.
//!
//! **Units.** A *page* is 8 KiB, a *hugepage* 256 pages, whatever the machine's page size. Page 0
//! is the region's first: only the floor and layers that hand out pointers know addresses.
#![no_std]

pub mod atomic;
mod bits;
mod geometry;
mod medium;
mod ones;
mod platform;
mod seams;
mod table;
mod units;

pub use bits::PageBits;
pub use geometry::{Geometry, Huge2M, Huge64K};
pub use medium::{LINE_BYTES, LINE_WORDS, Line, Medium, Promise, Space, SpaceError};
pub use ones::Ones;
pub use platform::{Machine, Mappings, Platform};
pub use seams::{
    Advice, Ask, Clock, CollapseError, Density, Floor, FrameSource, NoMemory, Residency, Span, SpanError, SpanSource,
};
pub use table::{Table, Zeroed};
pub use units::{
    Bytes, HUGEPAGE_SHIFT, HUGEPAGE_SIZE, HugePageId, HugePages, PAGE_SHIFT, PAGE_SIZE, PAGES_PER_HUGEPAGE, PageId,
    PageRange, Pages,
};

#[cfg(loom)]
pub use loom;

#[cfg(test)]
mod tests;
