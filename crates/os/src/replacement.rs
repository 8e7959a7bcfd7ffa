//! A file that appears whole: written under another name beside it, then renamed.
//!
//! **What.** Readers see the old file or the new one, also if the process is killed meanwhile. The
//! new one keeps the old one's mode. A pipe, a device, a link, or a file of another user is written
//! in place, and so is one in a folder where no other name can be made.
//!
//! **Failure.** `errno`; the old file stays, and the new name goes.
//! **Unsafe.** Calls `lstat`, `rename`, `unlink` and `fchmod`.

use crate::{Decimal, OutFile, call, process};
use core::mem::MaybeUninit;

/// The longest path with its closing 0.
const PATH: usize = 512;
/// `.PID.part` and the closing 0.
const MORE: usize = 18;

pub struct Replacement<'a> {
    file: OutFile,
    path: &'a [u8],
    /// The other name, with a closing 0; `None`: in place.
    part: Option<[u8; PATH + MORE]>,
}

impl<'a> Replacement<'a> {
    /// `path` ends by 0; at most 512 bytes.
    ///
    /// # Errors
    /// `errno`.
    pub fn of(path: &'a [u8]) -> Result<Self, i32> {
        let (name, old) = (part_of(path), Old::at(path));
        if let Some(name) = name.filter(|_| old != Old::Other)
            && let Ok(file) = OutFile::create_new(&name)
        {
            if let Old::Ours(mode) = old {
                file.set_mode(mode);
            }
            return Ok(Self { file, path, part: Some(name) });
        }
        Ok(Self { file: OutFile::create(path)?, path, part: None })
    }

    pub fn file(&self) -> &OutFile {
        &self.file
    }

    /// # Errors
    /// `errno`.
    pub fn commit(mut self) -> Result<(), i32> {
        let Some(part) = self.part.take() else { return Ok(()) };
        // SAFETY: two terminated paths.
        let renamed = unsafe { libc::rename(call::path(&part).as_ptr(), call::path(self.path).as_ptr()) == 0 };
        if renamed {
            return Ok(());
        }
        let error = process::errno();
        self.part = Some(part);
        Err(error)
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // SAFETY: a terminated path, of a file that we made.
            unsafe { libc::unlink(call::path(part).as_ptr()) };
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Old {
    None,
    Ours(u32),
    /// To be written in place.
    Other,
}

impl Old {
    fn at(path: &[u8]) -> Self {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: a terminated path, and room for the answer.
        if unsafe { libc::lstat(call::path(path).as_ptr(), status.as_mut_ptr()) } != 0 {
            return if process::errno() == libc::ENOENT { Self::None } else { Self::Other };
        }
        // SAFETY: the call succeeded.
        let status = unsafe { status.assume_init() };
        // SAFETY: no preconditions.
        let is_own = status.st_uid == unsafe { libc::geteuid() };
        match status.st_mode & libc::S_IFMT == libc::S_IFREG && is_own && status.st_nlink == 1 {
            true => Self::Ours(status.st_mode & 0o777),
            false => Self::Other,
        }
    }
}

/// `PATH.PID.part`; `None`: too long.
fn part_of(path: &[u8]) -> Option<[u8; PATH + MORE]> {
    let mut name = [0; PATH + MORE];
    let len = path.iter().position(|byte| *byte == 0)?;
    let number = Decimal::new(process::id().into());
    let mut at = 0;
    for piece in [&path[..len], b".", number.as_bytes(), b".part"] {
        name.get_mut(at..at + piece.len())?.copy_from_slice(piece);
        at += piece.len();
    }
    (at < name.len()).then_some(name)
}

#[cfg(test)]
mod tests;
