use core::fmt;
use craton_os::persistent_file::FileError;
use craton_pheap::Error as HeapError;

/// Why a request was refused. Heap and file are as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be made, opened or written.
    File(FileError),
    /// The heap refuses, or is damaged.
    Heap(HeapError),
    /// The path has a zero byte.
    Path,
    /// The `errno` of a refused rename or sync.
    System(i32),
    /// The device holds a heap already.
    HoldsHeap,
    /// The file was used with sync points and not closed: open it with sync points again.
    HasJournal,
    /// There is a journal of this name, but no heap.
    JournalAlone,
    /// A forked child: the heap is its parent's.
    Forked,
    /// The heap survives the end of the process, and has no sync points.
    NoSyncPoints,
    /// The root was made for another type.
    RootType { found: u64, expected: u64 },
    /// The object was reserved in another heap, and is free there.
    OtherHeap,
    /// A null pointer.
    Null,
    /// No such element.
    Index { index: u64, len: u64 },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => write!(f, "{why}"),
            Self::Heap(why) => write!(f, "{why}"),
            Self::Path => write!(f, "a path has no zero byte"),
            Self::System(errno) => write!(f, "{}", std::io::Error::from_raw_os_error(*errno)),
            Self::HoldsHeap => write!(f, "the device holds a heap already; clear its first line to make a new one"),
            Self::HasJournal => write!(f, "used with sync points and not closed: open it with sync points again"),
            Self::JournalAlone => write!(
                f,
                "no such file, but its journal is there: restore the heap, or remove the journal to make a new one"
            ),
            Self::Forked => write!(f, "this process was forked: only the process that opened the heap may change it"),
            Self::NoSyncPoints => write!(f, "this heap was not opened with sync points: it survives a process crash"),
            Self::RootType { found, expected } => {
                write!(f, "the root is of another type: its tag is {found:#x}, not {expected:#x}")
            }
            Self::OtherHeap => write!(f, "the object was reserved in another heap"),
            Self::Null => write!(f, "a null pointer"),
            Self::Index { index, len } => write!(f, "no element {index} in an array of {len}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<FileError> for Error {
    fn from(why: FileError) -> Self {
        Self::File(why)
    }
}

impl From<HeapError> for Error {
    fn from(why: HeapError) -> Self {
        Self::Heap(why)
    }
}

impl From<std::io::Error> for Error {
    fn from(why: std::io::Error) -> Self {
        match why.kind() {
            std::io::ErrorKind::AlreadyExists => Self::File(FileError::Exists),
            std::io::ErrorKind::NotFound => Self::File(FileError::Missing),
            _ => Self::System(why.raw_os_error().unwrap_or(0)),
        }
    }
}
