//! Units, bit sets, metadata tables and the small traits between Craton's layers.
//!
//! **What.** The words that every layer shares: how much ([`Bytes`], [`Pages`], [`HugePages`]), where ([`PageId`],
//! [`HugePageId`], [`PageRange`]), sets of pages inside one hugepage ([`PageBits`]), metadata arrays that grow with the
//! heap ([`Table`]) and the seams ([`Floor`], [`SpanSource`], [`FrameSource`], [`Clock`]).
//!
//! **Units.** A *page* is 8 KiB, the unit of the page heap; a *hugepage* is 2 MiB, 256 pages. Both are units of
//! Craton, whatever the page size of the machine: the machine's is found at run time by the floor.
//! Page 0 is the first page of the heap's region, wherever that was mapped: policies count pages, only the floor and
//! the layers that hand out pointers know an address.
//!
//! **Failure.** A seam can refuse ([`NoMemory`]); after a refusal the caller's state is as before.
//!
//! **Not here.** Anything that calls the system, allocates, or keeps a policy.
#![no_std]

pub mod atomic;
mod bits;
mod geometry;
mod ones;
mod platform;
mod seams;
mod table;
mod units;

pub use bits::PageBits;
pub use geometry::{Geometry, Huge2M, Huge64K};
pub use ones::Ones;
pub use platform::{Machine, Mappings, Platform};
pub use seams::{
    Advice, Clock, CollapseError, Density, Floor, FrameSource, NoMemory, Residency, Span, SpanError, SpanSource,
};
pub use table::{Table, Zeroed};
pub use units::{
    Bytes, HUGEPAGE_SHIFT, HUGEPAGE_SIZE, HugePageId, HugePages, PAGE_SHIFT, PAGE_SIZE, PAGES_PER_HUGEPAGE, PageId,
    PageRange, Pages,
};

/// What models of protocols are written with.
#[cfg(loom)]
pub use loom;

#[cfg(test)]
mod tests;
