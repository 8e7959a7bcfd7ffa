//! An open file or device, locked for its opener.
//!
//! **Unsafe.** Calls the system on its own descriptor.

use super::FileError;
use crate::file_map::file_size_limit;
use crate::process::errno;
use crate::small_file::{PathText, read_start};
use crate::{Decimal, call};
use core::ffi::CStr;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    BlockDevice,
    /// As `/dev/dax0.0`.
    DaxDevice,
}

#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: i32,
    /// It alone ends the lock.
    opener: u32,
    pub(crate) kind: Kind,
    /// Of the device, or of the one that holds the file.
    pub(crate) device: (u32, u32),
}

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
    pub(crate) fn create(path: &CStr) -> Result<Self, FileError> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOCTTY | libc::O_NONBLOCK;
        Self::locked(path, flags, Access::ReadWrite)
    }

    pub(crate) fn open(path: &CStr, access: Access) -> Result<Self, FileError> {
        let flags = if access == Access::ReadWrite { libc::O_RDWR } else { libc::O_RDONLY };
        Self::locked(path, flags | libc::O_NOCTTY | libc::O_NONBLOCK, access)
    }

    /// Another file's lock protects it.
    pub(crate) fn beside(path: &CStr) -> Result<Self, FileError> {
        Self::beside_if(path, true)
    }

    pub(crate) fn beside_if(path: &CStr, creates: bool) -> Result<Self, FileError> {
        let create = if creates { libc::O_CREAT } else { 0 };
        Self::of(path, libc::O_RDWR | create | libc::O_NOCTTY | libc::O_NONBLOCK)
    }

    /// Without a lock.
    pub(crate) fn to_read(path: &CStr) -> Result<Self, FileError> {
        Self::of(path, libc::O_RDONLY | libc::O_NOCTTY | libc::O_NONBLOCK)
    }

    fn locked(path: &CStr, flags: i32, access: Access) -> Result<Self, FileError> {
        let file = Self::of(path, flags)?;
        let lock = if access == Access::ReadWrite { libc::LOCK_EX } else { libc::LOCK_SH };
        // SAFETY: our descriptor.
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
        // SAFETY: zeros are a valid `stat`.
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
                // SAFETY: our descriptor, whose place nothing uses.
                retry("lseek", || unsafe { libc::lseek(self.fd, 0, libc::SEEK_END) }).map(|n| n as u64)
            }
            Kind::DaxDevice => dax_size(b"/sys", self.device).ok_or(FileError::NotAFile),
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        const TMPFS: i64 = 0x0102_1994;
        const RAMFS: i64 = 0x8584_58f6;
        // SAFETY: zeros are a valid `statfs`.
        let kind = unsafe {
            let mut status: libc::statfs = core::mem::zeroed();
            if libc::fstatfs(self.fd, &mut status) == 0 { status.f_type as i64 } else { 0 }
        };
        matches!(kind, TMPFS | RAMFS)
    }

    pub(crate) fn fd(&self) -> i32 {
        self.fd
    }

    pub(crate) fn set_size(&self, bytes: u64) -> Result<(), FileError> {
        // Beyond, the system sends a signal.
        if bytes > file_size_limit() {
            return Err(FileError::Full(libc::EFBIG));
        }
        // SAFETY: our descriptor.
        retry("ftruncate", || i64::from(unsafe { libc::ftruncate(self.fd, bytes as i64) })).map(drop)
    }

    /// File systems that cannot do so promise nothing.
    pub(crate) fn allocate(&self, at: u64, bytes: u64) -> Result<(), FileError> {
        if at.saturating_add(bytes) > file_size_limit() {
            return Err(FileError::Full(libc::EFBIG));
        }
        match retry("fallocate", || i64::from(call::allocate(self.fd, at as i64, bytes as i64))) {
            Ok(_) | Err(FileError::System(_, libc::EOPNOTSUPP | libc::ENOSYS)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), FileError> {
        while !into.is_empty() {
            // SAFETY: the buffer has this length.
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

    /// Not repeated: after a failure the system may drop data and report success.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        if call::sync(self.fd) == 0 { Ok(()) } else { Err(FileError::of("fdatasync", errno())) }
    }
}

pub(crate) fn sync_folder(path: &CStr) -> Result<(), FileError> {
    let fd = retry("open", || i64::from(call::open(path, libc::O_RDONLY | libc::O_DIRECTORY, 0)))? as i32;
    let folder = Descriptor { fd, opener: 0, kind: Kind::File, device: (0, 0) };
    match folder.sync() {
        Err(FileError::System(_, libc::EINVAL)) => Ok(()),
        answer => answer,
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: ours.
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

fn dax_size(sys: &[u8], device: (u32, u32)) -> Option<u64> {
    let mut buffer = [0; 32];
    let text = read_start(&device_path(sys, b"/dev/char/", device, b"/size")?, &mut buffer).ok()?;
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok().filter(|bytes| *bytes > 0)
}

pub(super) fn device_path(sys: &[u8], kind: &[u8], (major, minor): (u32, u32), file: &[u8]) -> Option<PathText> {
    let mut path = PathText::new(sys)?;
    let (major, minor) = (Decimal::new(major.into()), Decimal::new(minor.into()));
    let parts: [&[u8]; 5] = [kind, major.as_bytes(), b":", minor.as_bytes(), file];
    parts.iter().all(|part| path.push(part)).then_some(path)
}

#[cfg(test)]
mod tests;
