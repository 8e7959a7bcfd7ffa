//! Errors of requests, and of heap files. After one, the heap is as before.

use crate::extents::ExtentError;
use crate::layout::{OFFSET_MASK, PAGE};
use core::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The medium cannot grow, and no free range is long enough.
    NoMemory,
    /// 0 bytes.
    NoSize,
    /// Larger than the heap can ever hold.
    TooLarge { size: u64, most: u64 },
    /// Not a multiple of 8, or outside of the roots and the objects.
    NotASlot { at: u64 },
    /// The slot holds 0.
    Null { slot: u64 },
    /// No object of this heap begins there.
    NotAnObject { at: u64 },
    /// The object is free.
    AlreadyFree { at: u64 },
    /// A batch names this slot or object twice.
    Twice { at: u64 },
    /// There are as many as lanes.
    TooManyTransactions,
    /// A batch has more parts than a lane holds.
    TooMany { parts: usize, most: usize },
    /// Not inside the heap.
    OutOfRange { at: u64, len: u64 },
    /// No root has this name.
    NoRoot,
    /// A root has this name.
    RootExists { slot: u64 },
    /// The root's slot holds an object.
    RootInUse { slot: u64 },
    /// Names have 1 to 39 bytes.
    RootName { len: usize },
    /// The table of roots is full.
    RootsFull,
    /// A heap cannot have this value.
    Config { what: &'static str, value: u64 },
    /// Not a heap: its first word.
    NotAHeap { found: u64 },
    /// Another version of the format.
    Version { found: u32, known: u32 },
    /// Recovery relies on this part. Nothing was changed.
    Damaged { what: &'static str, at: u64 },
    /// The heap is longer than its medium.
    Truncated { len: u64, needed: u64 },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoMemory => {
                write!(
                    f,
                    "no free range is long enough, and the heap cannot grow: the disk is full, or its limit is reached"
                )
            }
            Self::NoSize => write!(f, "an object of 0 bytes"),
            Self::TooLarge { size, most } => write!(f, "an object of {size} bytes; this heap holds at most {most}"),
            Self::NotASlot { at } => write!(f, "{at:#x} is no slot: not a multiple of 8, or outside roots and objects"),
            Self::Null { slot } => write!(f, "the slot at {slot:#x} holds no object"),
            Self::NotAnObject { at } => write!(f, "{at:#x} is not the beginning of an object of this heap"),
            Self::AlreadyFree { at } => write!(f, "the object at {at:#x} is free already"),
            Self::Twice { at } => write!(f, "one step names {at:#x} twice"),
            Self::TooManyTransactions => write!(f, "more transactions at once than lanes"),
            Self::TooMany { parts, most } => write!(f, "{parts} changes of slots in one step; the most is {most}"),
            Self::OutOfRange { at, len } => write!(f, "{len} bytes from {at:#x} do not lie in the heap"),
            Self::NoRoot => write!(f, "there is no root of this name"),
            Self::RootExists { slot } => write!(f, "there is a root of this name, at {slot:#x}"),
            Self::RootInUse { slot } => write!(f, "the root at {slot:#x} still holds an object"),
            Self::RootName { len } => write!(f, "a root's name has 1 to 39 bytes, not {len}"),
            Self::RootsFull => write!(f, "the table of roots is full"),
            Self::Config { what, value } => write!(f, "{value} is not possible as {what} of a heap"),
            Self::NotAHeap { found } => write!(f, "no persistent heap: it begins with {found:#x}"),
            Self::Version { found, known } => write!(f, "a heap of version {found}; this library knows {known}"),
            Self::Damaged { what, at } => write!(f, "damaged: {what} at {at:#x}"),
            Self::Truncated { len, needed } => write!(f, "the file has {len} bytes; the heap needs {needed}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ExtentError> for Error {
    fn from(error: ExtentError) -> Self {
        match error {
            ExtentError::NoMemory => Self::NoMemory,
            ExtentError::Pages { pages } => Self::TooLarge { size: u64::from(pages) * PAGE, most: OFFSET_MASK },
            ExtentError::NotAllocated { page } => Self::AlreadyFree { at: page * PAGE },
            ExtentError::Corrupt { what, at } => Self::Damaged { what, at },
        }
    }
}
