//! Why a heap file cannot be made, opened or changed.

use core::fmt;
use craton_base::SpaceError;

/// A fault of a heap file. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileError {
    /// No file is there, or no folder.
    Missing,
    /// A file to be created is there already.
    Exists,
    /// Another opener has it: in this process or another one.
    InUse,
    /// It is a folder, a socket, or another kind without contents.
    NotAFile,
    /// The file system, or this opening of the file, allows no changes.
    ReadOnly,
    /// The user may not.
    Denied(i32),
    /// The length is 0 or not a multiple of 4,096 bytes.
    Length(u64),
    /// The length is beyond the limit that the file was opened with.
    TooLong(u64),
    /// The disk, the quota or the limit on file sizes leaves no room.
    Full(i32),
    /// The process has no address space of this many bytes.
    AddressSpace(u64),
    /// A device has no other size.
    Fixed,
    /// The CPU has no instruction to write a cache line back.
    NoWriteBack,
    /// The file beside the heap file is no journal, or one of another version.
    Journal,
    /// The journal beside the file is damaged at this offset, although later parts are whole.
    Damaged(u64),
    /// The system call of this name failed, with this `errno`.
    System(&'static str, i32),
}

impl FileError {
    pub(crate) fn of(call: &'static str, errno: i32) -> Self {
        match errno {
            libc::ENOENT | libc::ENOTDIR => Self::Missing,
            libc::EEXIST => Self::Exists,
            libc::EWOULDBLOCK => Self::InUse,
            libc::EISDIR | libc::ENXIO => Self::NotAFile,
            libc::EROFS => Self::ReadOnly,
            libc::EACCES | libc::EPERM => Self::Denied(errno),
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Self::Full(errno),
            _ => Self::System(call, errno),
        }
    }

    /// The system's number for it.
    pub fn errno(self) -> i32 {
        match self {
            Self::Missing => libc::ENOENT,
            Self::Exists => libc::EEXIST,
            Self::InUse => libc::EWOULDBLOCK,
            Self::NotAFile => libc::ENODEV,
            Self::ReadOnly => libc::EROFS,
            Self::Length(_) | Self::Journal | Self::Damaged(_) => libc::EINVAL,
            Self::TooLong(_) => libc::EFBIG,
            Self::AddressSpace(_) => libc::ENOMEM,
            Self::Fixed => libc::EINVAL,
            Self::NoWriteBack => libc::EOPNOTSUPP,
            Self::Denied(errno) | Self::Full(errno) | Self::System(_, errno) => errno,
        }
    }
}

impl From<FileError> for SpaceError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Full(_) | FileError::TooLong(_) | FileError::AddressSpace(_) => Self::Full,
            FileError::Fixed => Self::Fixed,
            other => Self::System(other.errno()),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "no such file"),
            Self::Exists => write!(f, "the file exists"),
            Self::InUse => write!(f, "the file is open already, here or in another process"),
            Self::NotAFile => write!(f, "not a file with contents"),
            Self::ReadOnly => write!(f, "it can only be read"),
            Self::Denied(_) => write!(f, "permission denied"),
            Self::Length(bytes) => write!(f, "{bytes} bytes are not whole pages of 4096"),
            Self::TooLong(bytes) => write!(f, "{bytes} bytes are beyond the limit"),
            Self::Full(_) => write!(f, "no space left"),
            Self::AddressSpace(bytes) => write!(f, "no address space of {bytes} bytes"),
            Self::Fixed => write!(f, "the size of a device is fixed"),
            Self::NoWriteBack => write!(f, "the CPU cannot write a cache line back"),
            Self::Journal => write!(f, "the journal is none, or of another version"),
            Self::Damaged(at) => write!(f, "the journal is damaged at byte {at}"),
            Self::System(call, errno) => write!(f, "{call} failed with error {errno}"),
        }
    }
}
