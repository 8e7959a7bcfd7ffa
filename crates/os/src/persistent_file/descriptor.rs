//! An open file or device, locked for its opener.
//!
//! **What.** The system calls on a heap file, each with its error as a [`FileError`].
//! **Threads.** The system orders them. **Failure.** An interrupted call is repeated.
//! **Unsafe.** Calls the system on a descriptor that this value owns.

use super::FileError;
use crate::file_map::file_size_limit;
use crate::process::errno;
use crate::small_file::{PathText, read_start};
use crate::{Decimal, call};
use core::ffi::CStr;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    ReadWrite,
    /// Many readers can open it at once.
    ReadOnly,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    BlockDevice,
    /// Memory behind a character device, as `/dev/dax0.0`.
    DaxDevice,
}

#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: i32,
    /// The process that opened it, which alone ends the lock: forked ones share it.
    opener: u32,
    pub(crate) kind: Kind,
    /// Major and minor number: of the device itself, or of the one that the file is on.
    pub(crate) device: (u32, u32),
}

/// Repeats a call that a signal interrupts.
fn retry(name: &'static str, mut f: impl FnMut() -> i64) -> Result<i64, FileError> {
    loop {
        let answer = f();
        if answer >= 0 {
            return Ok(answer);
        }
        match errno() {
            libc::EINTR => {}
            errno => return Err(FileError::of(name, errno)),
        }
    }
}

impl Descriptor {
    /// Makes a file that was not there. Its user and group may use it, as far as the mask allows.
    pub(crate) fn create(path: &CStr) -> Result<Self, FileError> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_NONBLOCK;
        Self::locked(path, flags, Access::ReadWrite)
    }

    pub(crate) fn open(path: &CStr, access: Access) -> Result<Self, FileError> {
        let flags = if access == Access::ReadWrite { libc::O_RDWR } else { libc::O_RDONLY };
        Self::locked(path, flags | libc::O_NOCTTY | libc::O_NONBLOCK, access)
    }

    /// Opens a file that another one's lock protects, and makes it if it is not there.
    pub(crate) fn beside(path: &CStr) -> Result<Self, FileError> {
        Self::of(path, libc::O_RDWR | libc::O_CREAT | libc::O_NOCTTY | libc::O_NONBLOCK)
    }

    fn locked(path: &CStr, flags: i32, access: Access) -> Result<Self, FileError> {
        let file = Self::of(path, flags)?;
        let lock = if access == Access::ReadWrite { libc::LOCK_EX } else { libc::LOCK_SH };
        // SAFETY: a call on our descriptor.
        retry("flock", || i64::from(unsafe { libc::flock(file.fd, lock | libc::LOCK_NB) }))?;
        Ok(file)
    }

    fn of(path: &CStr, flags: i32) -> Result<Self, FileError> {
        let fd = retry("open", || i64::from(call::open(path, flags, 0o660)))? as i32;
        let mut file = Self { fd, opener: crate::process::id(), kind: Kind::File, device: (0, 0) };
        let status = file.status()?;
        (file.kind, file.device) = match status.st_mode & libc::S_IFMT {
            libc::S_IFREG => (Kind::File, numbers(status.st_dev)),
            libc::S_IFBLK => (Kind::BlockDevice, numbers(status.st_rdev)),
            libc::S_IFCHR if dax_size(b"/sys", numbers(status.st_rdev)).is_some() => {
                (Kind::DaxDevice, numbers(status.st_rdev))
            }
            _ => return Err(FileError::NotAFile),
        };
        Ok(file)
    }

    fn status(&self) -> Result<libc::stat, FileError> {
        // SAFETY: zeros are a valid `stat`, which the call fills.
        let (answer, status) = unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            (libc::fstat(self.fd, &mut status), status)
        };
        if answer == 0 { Ok(status) } else { Err(FileError::of("fstat", errno())) }
    }

    pub(crate) fn size(&self) -> Result<u64, FileError> {
        match self.kind {
            Kind::File => self.status().map(|status| status.st_size as u64),
            Kind::BlockDevice => {
                // SAFETY: a call on our descriptor, whose place nothing uses.
                retry("lseek", || unsafe { libc::lseek(self.fd, 0, libc::SEEK_END) }).map(|n| n as u64)
            }
            Kind::DaxDevice => dax_size(b"/sys", self.device).ok_or(FileError::NotAFile),
        }
    }

    pub(crate) fn fd(&self) -> i32 {
        self.fd
    }

    /// Sets the length of a file.
    pub(crate) fn set_size(&self, bytes: u64) -> Result<(), FileError> {
        // Beyond this limit the system sends a signal.
        if bytes > file_size_limit() {
            return Err(FileError::Full(libc::EFBIG));
        }
        // SAFETY: a call on our descriptor.
        retry("ftruncate", || i64::from(unsafe { libc::ftruncate(self.fd, bytes as i64) })).map(drop)
    }

    /// Makes room for a part of the file. File systems that cannot do so promise nothing.
    pub(crate) fn allocate(&self, at: u64, bytes: u64) -> Result<(), FileError> {
        if at.saturating_add(bytes) > file_size_limit() {
            return Err(FileError::Full(libc::EFBIG));
        }
        match retry("fallocate", || i64::from(call::allocate(self.fd, at as i64, bytes as i64))) {
            Ok(_) | Err(FileError::System(_, libc::EOPNOTSUPP | libc::ENOSYS)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads bytes that are there.
    pub(crate) fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), FileError> {
        while !into.is_empty() {
            // SAFETY: the buffer is as long as stated.
            let read = retry("pread", || unsafe {
                call::read_at(self.fd, into.as_mut_ptr().cast(), into.len(), at as i64) as i64
            })? as usize;
            if read == 0 {
                return Err(FileError::Length(at));
            }
            (at, into) = (at + read as u64, &mut into[read..]);
        }
        Ok(())
    }

    pub(crate) fn write(&self, mut at: u64, mut from: &[u8]) -> Result<(), FileError> {
        // Beyond this limit the system sends a signal.
        if at.saturating_add(from.len() as u64) > file_size_limit() {
            return Err(FileError::Full(libc::EFBIG));
        }
        while !from.is_empty() {
            let written = retry("pwrite", || call::write_at(self.fd, from, at as i64) as i64)? as usize;
            if written == 0 {
                return Err(FileError::Full(libc::ENOSPC));
            }
            (at, from) = (at + written as u64, &from[written..]);
        }
        Ok(())
    }

    pub(crate) fn punch(&self, at: u64, bytes: u64) -> Result<(), FileError> {
        retry("fallocate", || i64::from(call::punch(self.fd, at as i64, bytes as i64))).map(drop)
    }

    /// Makes contents and length durable. A failure is not repeated: the system may have dropped
    /// what it could not write, and would then report success.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        if call::sync(self.fd) == 0 { Ok(()) } else { Err(FileError::of("fdatasync", errno())) }
    }
}

/// Makes durable which files a folder has.
pub(crate) fn sync_folder(path: &CStr) -> Result<(), FileError> {
    let fd = retry("open", || i64::from(call::open(path, libc::O_RDONLY | libc::O_DIRECTORY, 0)))? as i32;
    let folder = Descriptor { fd, opener: 0, kind: Kind::File, device: (0, 0) };
    match folder.sync() {
        // Some file systems have no such wait, and do it at once.
        Err(FileError::System(_, libc::EINVAL)) => Ok(()),
        answer => answer,
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's.
        unsafe {
            if self.opener == crate::process::id() {
                libc::flock(self.fd, libc::LOCK_UN);
            }
            call::close(self.fd);
        }
    }
}

fn numbers(device: libc::dev_t) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

/// Bytes of a DAX device; `None` of another device.
fn dax_size(sys: &[u8], device: (u32, u32)) -> Option<u64> {
    let mut buffer = [0; 32];
    let text = read_start(&device_path(sys, b"/dev/char/", device, b"/size")?, &mut buffer).ok()?;
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok().filter(|bytes| *bytes > 0)
}

/// A path below a device's folder.
pub(super) fn device_path(sys: &[u8], kind: &[u8], (major, minor): (u32, u32), file: &[u8]) -> Option<PathText> {
    let mut path = PathText::new(sys)?;
    let (major, minor) = (Decimal::new(major.into()), Decimal::new(minor.into()));
    let parts: [&[u8]; 5] = [kind, major.as_bytes(), b":", minor.as_bytes(), file];
    parts.iter().all(|part| path.push(part)).then_some(path)
}

#[cfg(test)]
mod tests;
