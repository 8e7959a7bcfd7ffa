//! The paths beside a heap file.
//!
//! **Unsafe.** Asks the system for the file behind a link.

use crate::persistent_file::FileError;
use crate::persistent_file::descriptor::sync_folder;
use crate::process::errno;
use crate::small_file::PathText;
use core::ffi::CStr;

pub const JOURNAL_EXTENSION: &str = "journal";

/// Behind a symbolic link: all names of a file must find the same journal.
pub(super) fn real_path(path: &CStr) -> Result<PathText, FileError> {
    let mut real = [0u8; libc::PATH_MAX as usize];
    // SAFETY: a terminated path, room as the call needs it, and zeros, a valid `stat`.
    let found = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let is_there = libc::lstat(path.as_ptr(), &mut status) == 0;
        let is_link = is_there && status.st_mode & libc::S_IFMT == libc::S_IFLNK;
        is_link.then(|| libc::realpath(path.as_ptr(), real.as_mut_ptr().cast()))
    };
    let bytes = match found {
        None => path.to_bytes(),
        Some(at) if at.is_null() => return Err(FileError::of("realpath", errno())),
        Some(_) => CStr::from_bytes_until_nul(&real).unwrap_or_default().to_bytes(),
    };
    PathText::new(bytes).ok_or(FileError::NameTooLong)
}

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
