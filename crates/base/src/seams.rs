//! The seams: what a layer asks of the one below, six methods at the most.

use crate::{HugePages, PageId, PageRange, Pages};

/// A request was refused for want of memory or address space. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// Why a hugepage was not collapsed. Nothing has changed, and contents survive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CollapseError {
    /// No free hugepage frame, or not enough room in the process's cgroup (`ENOMEM`).
    NoMemory,
    /// A page was in use by the kernel, or a frame could not be had now (`EBUSY`).
    Busy,
    /// A resource was short for a moment (`EAGAIN`, `EINTR`).
    Again,
    /// Not for this range or system: before Linux 6.1, no hugepages, nothing resident (`EINVAL`).
    Unsupported,
}

/// How a range should be backed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// By hugepages where the system can.
    Huge,
    /// By the machine's small pages.
    Small,
}

/// The parts of [`Residency`] to find out. Each costs system calls; a part not asked for is unset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Bytes that have memory.
    Resident,
    /// Bytes on hugepages.
    Huge,
    /// Both.
    Both,
}

/// The system's memory behind a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Residency {
    /// Bytes of the range with physical memory behind them.
    pub resident_bytes: usize,
    /// Bytes of them on physical hugepages; `None` when the system does not tell.
    pub huge_bytes: Option<usize>,
}

/// The system below the page heap: one region of address space, in pages from 0. Ranges passed to a
/// method lie inside the grant of [`Floor::reserve`].
pub trait Floor {
    /// Makes the first `total` hugepages, at least the last grant, readable and writable. *Post:*
    /// the new part reads as zeros, takes no memory until touched, and then small pages unless
    /// [`Floor::advise`] says otherwise. *Refused:* no change.
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory>;

    /// Backs a usable range now rather than at first touch. *Contents:* survive.
    fn back(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// Frees the memory of `range`. *Contents:* read as zeros. *Refused:* they survive.
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// Makes a whole number of resident hugepages physically huge. *Contents:* survive.
    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError>;

    /// Advises the backing from the next touch on; true if the system accepts. *Contents:* survive.
    fn advise(&mut self, range: PageRange, advice: Advice) -> bool;

    /// The system's memory behind `range`, as far as it reports it.
    fn residency(&self, range: PageRange, ask: Ask) -> Residency;
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
    pub range: PageRange,
    /// Every byte of it reads as zero.
    pub zeroed: bool,
}

/// An error in a request for a span, or in a free of one. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanError {
    /// No memory, or no address space.
    NoMemory,
    /// A span of no pages.
    Empty,
    /// More pages, or a larger alignment, than the whole region has.
    TooLong(Pages),
    /// The alignment is not a power of two.
    Alignment(Pages),
    /// No span that is out begins at this page, though the page is in use or was never granted.
    NeverGiven(PageId),
    /// No span is out there: it was given back before, or not given since.
    AlreadyFree(PageId),
    /// A span begins there, of another length.
    WrongLength(PageId),
}

impl From<NoMemory> for SpanError {
    fn from(_: NoMemory) -> Self {
        Self::NoMemory
    }
}

impl core::fmt::Display for SpanError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoMemory => write!(f, "no memory"),
            Self::Empty => write!(f, "a span has at least one page"),
            Self::TooLong(pages) => write!(f, "{} pages are more than the region has", pages.0),
            Self::Alignment(pages) => write!(f, "an alignment of {} pages is not a power of two", pages.0),
            Self::NeverGiven(page) => write!(f, "no span begins at page {}", page.0),
            Self::AlreadyFree(page) => write!(f, "the span at page {} is free already", page.0),
            Self::WrongLength(page) => write!(f, "the span at page {} has another length", page.0),
        }
    }
}

/// A source of spans: the page heap, for slabs and for large objects.
pub trait SpanSource {
    /// Takes `pages` (≥ 1) pages whose first is a multiple of `align` (a power of two, in pages).
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError>;

    /// Frees a whole span of `alloc`; no other range will do.
    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError>;

    /// Resizes a sparse span in place. Returns whether all added bytes read as zero.
    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError>;
}

/// A source of page frames, 2^order aligned frames at a time, of huge frames that come and go.
/// Threads may share a source that is [`Sync`]. A refusal changes nothing.
pub trait FrameSource {
    type Error: core::error::Error + Copy;

    /// log2 of the frames in a huge frame.
    const HUGE_ORDER: u32;

    /// Takes 2^`order` frames; returns the first. Separates densities as long as there is room.
    fn get(&self, order: u32, density: Density) -> Result<usize, Self::Error>;

    /// Takes `frames` frames from `first` on, of any number and alignment, if all of them are free.
    fn get_at(&self, first: usize, frames: usize) -> Result<(), Self::Error>;

    /// Frees `frames` frames from `first` on: part of an allocation, or several.
    fn put(&self, first: usize, frames: usize) -> Result<(), Self::Error>;

    /// Brings `huge_frames` offline huge frames from `first` on back, free.
    fn online(&self, first: usize, huge_frames: usize) -> Result<(), Self::Error>;

    /// Takes `huge_frames` wholly free huge frames from `first` on offline.
    fn offline(&self, first: usize, huge_frames: usize) -> Result<(), Self::Error>;

    /// Reclaims a wholly free huge frame, the first from about `near` on; returns its first frame.
    fn reclaim(&self, near: usize) -> Option<usize>;
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
    pub const fn new(first: PageId, len: Pages) -> Self {
        Self { first, len }
    }
}
