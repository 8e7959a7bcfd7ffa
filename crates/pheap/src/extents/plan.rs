use std::fmt;

pub const PAGE_BYTES: u64 = 4096;
/// 64 KiB: a slab is one unit.
pub const UNIT_PAGES: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtentKind {
    Object,
    Slab,
}

/// In use; `page` counts from byte 0 of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub page: u64,
    pub pages: u32,
    pub kind: ExtentKind,
}

/// The word that completes a committed plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// Offset.
    pub at: u64,
    pub value: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub page: u64,
    pub pages: u32,
    pub home: Home,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeState {
    Used(ExtentKind),
    /// Of the bookkeeping log.
    Log,
    /// Free, with memory.
    Reclaimed,
    /// Free, without memory.
    Retained,
    /// Losing its memory.
    Discarding,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub page: u64,
    pub pages: u64,
    pub state: RangeState,
}

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ExtentError {
    /// The file cannot grow enough.
    NoMemory,
    /// 0, or too many.
    Pages { pages: u32 },
    /// Freed twice, or never allocated.
    NotAllocated { page: u64 },
    /// The file contradicts itself at this offset.
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
