//! The paths beside a heap file.

use crate::persistent_file::FileError;
use crate::persistent_file::descriptor::sync_folder;
use crate::small_file::PathText;
use core::ffi::CStr;

pub const JOURNAL_EXTENSION: &str = "journal";

pub(super) fn journal_path(path: &CStr) -> Result<PathText, FileError> {
    let mut journal = PathText::new(path.to_bytes()).ok_or(FileError::NameTooLong)?;
    if journal.push(b".") && journal.push(JOURNAL_EXTENSION.as_bytes()) {
        Ok(journal)
    } else {
        Err(FileError::NameTooLong)
    }
}

pub fn sync_folder_of(path: &CStr) -> Result<(), FileError> {
    sync_folder(folder(path)?.as_c_str())
}

fn folder(path: &CStr) -> Result<PathText, FileError> {
    let path = path.to_bytes();
    let folder = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(end) => &path[..end],
        None => b".".as_slice(),
    };
    PathText::new(folder).ok_or(FileError::NameTooLong)
}
