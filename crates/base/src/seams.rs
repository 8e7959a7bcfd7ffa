//! Each layer asks the one below for six methods at most.

use crate::{HugePages, PageId, PageRange, Pages};

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// Nothing has changed; contents survive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CollapseError {
    /// No frame is free, or the cgroup is full (`ENOMEM`).
    NoMemory,
    /// The kernel uses a page, or no frame could be had now (`EBUSY`).
    Busy,
    /// For a moment (`EAGAIN`, `EINTR`).
    Again,
    /// By Linux before 6.1, or with nothing resident (`EINVAL`).
    Unsupported,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    Huge,
    Small,
}

/// Each costs system calls; others stay unset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    Resident,
    Huge,
    Both,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Residency {
    pub resident_bytes: usize,
    /// `None`: not reported.
    pub huge_bytes: Option<usize>,
}

/// A region in pages from 0. Ranges lie inside the grant of [`Floor::reserve`].
pub trait Floor {
    /// `total` is at least the last grant. *Post:* the new part reads as zeros, on small pages
    /// unless [`Floor::advise`] says otherwise. *Refused:* no change.
    fn reserve(&mut self, total: HugePages) -> Result<(), NoMemory>;

    /// Prepares for the first touch. *Contents:* survive.
    fn back(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// *Contents:* read as zeros. *Refused:* they survive.
    fn unback(&mut self, range: PageRange) -> Result<(), NoMemory>;

    /// For whole resident hugepages. *Contents:* survive.
    fn collapse(&mut self, range: PageRange) -> Result<(), CollapseError>;

    /// From the next touch on; `true` if accepted. *Contents:* survive.
    fn advise(&mut self, range: PageRange, advice: Advice) -> bool;

    fn residency(&self, range: PageRange, ask: Ask) -> Residency;
}

/// Many small objects live as long as the last of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Density {
    /// One object, or a few large ones.
    Sparse,
    /// More than 16 objects.
    Dense,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub range: PageRange,
    pub zeroed: bool,
}

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanError {
    NoMemory,
    Empty,
    /// Pages or alignment exceed the region.
    TooLong(Pages),
    /// Not a power of two.
    Alignment(Pages),
    /// The page is in use or was never granted.
    NeverGiven(PageId),
    AlreadyFree(PageId),
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

pub trait SpanSource {
    /// `pages` ≥ 1; `align` is a power of two.
    fn alloc(&mut self, pages: Pages, align: Pages, density: Density) -> Result<Span, SpanError>;

    /// A whole span of `alloc`.
    fn free(&mut self, span: PageRange, density: Density) -> Result<(), SpanError>;

    /// A sparse span, in place. Whether all added bytes read as zero.
    fn resize(&mut self, span: PageRange, pages: Pages) -> Result<bool, SpanError>;
}

/// Of 2^order aligned frames. Threads may share it if [`Sync`]. A refusal changes nothing.
pub trait FrameSource {
    type Error: core::error::Error + Copy;

    /// log2 of a huge frame's frames.
    const HUGE_ORDER: u32;

    /// Separates densities while there is room.
    fn get(&self, order: u32, density: Density) -> Result<usize, Self::Error>;

    /// Any number and alignment.
    fn get_at(&self, first: usize, frames: usize) -> Result<(), Self::Error>;

    /// Part of an allocation, or several.
    fn put(&self, first: usize, frames: usize) -> Result<(), Self::Error>;

    /// Offline ones, which become free.
    fn online(&self, first: usize, huge_frames: usize) -> Result<(), Self::Error>;

    /// Wholly free ones.
    fn offline(&self, first: usize, huge_frames: usize) -> Result<(), Self::Error>;

    /// A wholly free huge frame, the first from about `near` on; returns its first frame.
    fn reclaim(&self, near: usize) -> Option<usize>;
}

pub trait Clock {
    /// Since a fixed moment; never goes back.
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
