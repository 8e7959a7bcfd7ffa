use std::fmt;

/// Bytes of a page of the heap.
pub const PAGE_BYTES: u64 = 4096;
/// Pages of a unit, 64 KiB: a slab is one.
pub const UNIT_PAGES: u64 = 16;

/// The use of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtentKind {
    /// One large object.
    Object,
    /// A slab of small objects.
    Slab,
}

/// Pages in use: `page..page + pages`, counted from byte 0 of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub page: u64,
    pub pages: u32,
    pub kind: ExtentKind,
}

/// The one word that completes a plan, once its redo line is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// Offset of the word.
    pub at: u64,
    pub value: u64,
}

/// An extent that is being allocated or freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub page: u64,
    pub pages: u32,
    pub home: Home,
}

/// The use of a range, and whether it has memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeState {
    Used(ExtentKind),
    /// Chunks of the bookkeeping log.
    Log,
    /// Free, with memory: NVAlloc's reclaimed list.
    Reclaimed,
    /// Free, without memory: NVAlloc's retained list.
    Retained,
    /// Free, and losing its memory.
    Discarding,
}

/// A range of the data area, for checks and dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub page: u64,
    pub pages: u64,
    pub state: RangeState,
}

/// Why extents refused. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExtentError {
    /// The file cannot grow, and has no such extent, or no room for its log.
    NoMemory,
    /// No pages, or more than an entry can name.
    Pages { pages: u32 },
    /// No extent in use begins at that page: freed twice, or never allocated.
    NotAllocated { page: u64 },
    /// The heap's file contradicts itself at an offset.
    Corrupt { what: &'static str, at: u64 },
}

impl fmt::Display for ExtentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoMemory => write!(f, "the heap is full, and its file cannot grow"),
            Self::Pages { pages } => write!(f, "an extent cannot have {pages} pages"),
            Self::NotAllocated { page } => {
                write!(f, "no extent in use begins at offset {:#x}: freed twice, or never allocated", page * PAGE_BYTES)
            }
            Self::Corrupt { what, at } => write!(f, "the heap is damaged: {what} at offset {at:#x}"),
        }
    }
}

impl std::error::Error for ExtentError {}
