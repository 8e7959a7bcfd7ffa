//! The paths beside a heap file.

use crate::persistent_file::FileError;
use crate::small_file::PathText;
use core::ffi::CStr;

pub(super) fn journal_path(path: &CStr) -> Result<PathText, FileError> {
    let mut journal = PathText::new(path.to_bytes()).ok_or(FileError::System("open", libc::ENAMETOOLONG))?;
    if journal.push(b".journal") { Ok(journal) } else { Err(FileError::System("open", libc::ENAMETOOLONG)) }
}

pub(super) fn folder(path: &CStr) -> Result<PathText, FileError> {
    let path = path.to_bytes();
    let folder = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(end) => &path[..end],
        None => b".".as_slice(),
    };
    PathText::new(folder).ok_or(FileError::System("open", libc::ENAMETOOLONG))
}
