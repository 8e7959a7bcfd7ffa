//! Why a heap file cannot be made, opened or changed.

use crate::process;
use core::fmt;
use craton_base::SpaceError;

/// Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileError {
    /// Or no folder.
    Missing,
    Exists,
    /// By this process or another.
    InUse,
    /// A folder, a socket, or another kind without contents.
    NotAFile,
    /// The file system, or this opening, allows no changes.
    ReadOnly,
    /// With the ending of a file beside it.
    NameTooLong,
    Denied(i32),
    /// 0, or no multiple of 4,096.
    Length(u64),
    /// Beyond the opener's limit.
    TooLong(u64),
    /// Disk, quota or limit on file sizes.
    Full(i32),
    AddressSpace(u64),
    /// A device's length.
    Fixed,
    /// The CPU has no instruction.
    NoWriteBack,
    /// The file beside is no journal, or of another version.
    Journal,
    /// The file was not closed, and there is no journal, or an empty file.
    NoJournal,
    /// The journal is of another heap file, or of this one at another time.
    OtherJournal,
    /// The file was used with sync points and not closed.
    LeftOpen,
    /// Of its journal, in the file.
    Mark,
    /// At this offset, though later parts are whole.
    Damaged(u64),
    /// Call and `errno`.
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
            libc::ENAMETOOLONG => Self::NameTooLong,
            libc::EACCES | libc::EPERM => Self::Denied(errno),
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Self::Full(errno),
            _ => Self::System(call, errno),
        }
    }

    pub fn errno(self) -> i32 {
        match self {
            Self::Missing => libc::ENOENT,
            Self::Exists => libc::EEXIST,
            Self::InUse => libc::EWOULDBLOCK,
            Self::NotAFile => libc::ENODEV,
            Self::ReadOnly => libc::EROFS,
            Self::NameTooLong => libc::ENAMETOOLONG,
            Self::Length(_) | Self::Journal | Self::Damaged(_) | Self::Mark => libc::EINVAL,
            Self::NoJournal | Self::OtherJournal | Self::LeftOpen => libc::EINVAL,
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
            Self::NameTooLong => write!(f, "the path is too long"),
            Self::Denied(_) => write!(f, "permission denied"),
            Self::Length(0) => write!(f, "the file is empty"),
            Self::Length(bytes) => write!(f, "{bytes} bytes are not whole pages of 4096: no heap, or it was cut"),
            Self::TooLong(bytes) => write!(f, "{bytes} bytes are beyond the limit"),
            Self::Full(_) => write!(f, "no space left"),
            Self::AddressSpace(bytes) => write!(f, "no address space of {bytes} bytes"),
            Self::Fixed => write!(f, "the size of a device is fixed"),
            Self::NoWriteBack => write!(f, "the CPU cannot write a cache line back"),
            Self::Journal => write!(f, "the journal is none, or of another version"),
            Self::NoJournal => write!(f, "its journal is missing or empty, and has the last sync points: restore it"),
            Self::OtherJournal => {
                write!(f, "the journal is of another heap, or of this one at another time: restore the right one")
            }
            Self::LeftOpen => write!(f, "it was used with sync points and not closed: open it so, with its journal"),
            Self::Mark => write!(f, "the mark of its journal is damaged, at byte 960"),
            Self::Damaged(at) => write!(f, "the journal is damaged at byte {at}"),
            Self::System(call, errno) => write!(f, "{call} failed: {}", process::ErrnoText(*errno)),
        }
    }
}
