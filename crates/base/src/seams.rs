//! The seams: what a layer asks of the one below, six methods at the most.

use crate::{HugePages, PageId, PageRange, Pages};

/// A request was refused for want of memory or address space. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// How a range should be backed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// By hugepages where the system can.
    Huge,
    /// By the machine's small pages.
    Small,
}

/// What the system holds of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Residency {
    /// Bytes of the range with physical memory behind them.
    pub resident_bytes: usize,
}

/// The system below the page heap: one region of address space, counted in pages from 0.
///
/// Ranges given to a method lie inside what [`Floor::reserve`] granted.
pub trait Floor {
    /// Makes the first `total` hugepages of the region usable (readable and writable); what was usable stays so.
    ///
    /// *Pre:* `total` is not below the last grant. *Post:* the new part reads as zeros and takes no memory until
    /// touched. *Refused:* nothing changed.
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory>;

    /// Gives a usable range its memory now rather than at first touch. *Contents:* survive.
    fn back(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// Takes the memory behind `range` away; the range stays usable. *Contents:* lost, it reads as zeros.
    /// *Refused:* contents survive.
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// Makes a whole number of resident hugepages physically huge. *Contents:* survive.
    fn collapse(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// Says how `range` should be backed from the next touch on. *Contents:* survive. Advice cannot fail.
    fn advise(&mut self, range: PageRange, advice: Advice);

    /// What the system holds of `range`.
    fn residency(&self, range: PageRange) -> Residency;
}

/// How many objects a span will hold: many small ones live as long as the longest-lived of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Density {
    /// One object, or a few large ones.
    Sparse,
    /// More than 16 objects.
    Dense,
}

/// A span as it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The pages.
    pub range: PageRange,
    /// Every byte of it reads as zero.
    pub zeroed: bool,
}

/// Whoever hands out spans: the page heap, for slabs and for large objects.
pub trait SpanSource {
    /// Takes `pages` (≥ 1) pages whose first is a multiple of `align` (a power of two, in pages).
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, NoMemory>;

    /// Gives back a whole span that `alloc` gave; no other range will do.
    fn free(&mut self, span: PageRange, density: Density);

    /// Lengthens or shortens a sparse span where it stands; on `Err` nothing changed. Returns whether every byte
    /// that was added reads as zero.
    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, NoMemory>;
}

/// The time, so that policies can be driven by a test.
pub trait Clock {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now_ns(&self) -> u64 {
        (**self).now_ns()
    }
}

impl PageRange {
    /// The range of `len` pages from page `first` on.
    pub const fn new(first: PageId, len: Pages) -> Self {
        Self { first, len }
    }
}
