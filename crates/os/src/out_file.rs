//! A file written in pieces, without memory.
//!
//! **Failure.** `errno`; the file stays as far as it was written. The caller keeps the program's
//! `errno`.
//! **Unsafe.** Closes its descriptor, and sets its mode.

use crate::small_file::PathText;
use crate::{Line, call, process};

pub struct OutFile(i32);

impl OutFile {
    /// Replaces an old file; `path` ends by 0. New files get mode 0600.
    ///
    /// # Errors
    /// `errno`.
    pub fn create(path: &[u8]) -> Result<Self, i32> {
        let fd = call::open(call::path(path), libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOCTTY, 0o600);
        if fd >= 0 { Ok(Self(fd)) } else { Err(process::errno()) }
    }

    /// `path` ends by 0. Mode 0600.
    ///
    /// # Errors
    /// `errno`; `EEXIST` if there is one.
    pub(crate) fn create_new(path: &[u8]) -> Result<Self, i32> {
        let fd = call::open(call::path(path), libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o600);
        if fd >= 0 { Ok(Self(fd)) } else { Err(process::errno()) }
    }

    pub(crate) fn set_mode(&self, mode: u32) {
        // SAFETY: touches no memory. A refusal leaves 0600.
        unsafe { libc::fchmod(self.0, mode) };
    }

    /// Behind what the file has; `path` ends by 0. New files get mode 0600.
    ///
    /// # Errors
    /// `errno`.
    pub fn append(path: &[u8]) -> Result<Self, i32> {
        // O_NONBLOCK: a pipe without a reader would wait.
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOCTTY | libc::O_NONBLOCK;
        let fd = call::open(call::path(path), flags, 0o600);
        if fd >= 0 { Ok(Self(fd)) } else { Err(process::errno()) }
    }

    /// # Errors
    /// `errno`.
    pub fn write_line(&self, line: &mut Line) -> Result<(), i32> {
        self.write(line.ended())
    }

    /// # Errors
    /// `errno`.
    pub fn write(&self, mut bytes: &[u8]) -> Result<(), i32> {
        while !bytes.is_empty() {
            match usize::try_from(process::write_without_signals(self.0, bytes)) {
                Ok(0) => return Err(libc::EIO),
                Ok(n) => bytes = &bytes[n..],
                Err(_) if process::errno() == libc::EINTR => {}
                Err(_) => return Err(process::errno()),
            }
        }
        Ok(())
    }

    /// # Errors
    /// `errno`.
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), i32> {
        if call::write_at(self.0, bytes, at as i64) == bytes.len() as isize { Ok(()) } else { Err(process::errno()) }
    }

    /// Appends the process's mappings, as the kernel lists them; returns their bytes.
    ///
    /// # Errors
    /// `errno`.
    pub fn write_maps(&self) -> Result<u64, i32> {
        let path = PathText::new(b"/proc/self/maps").ok_or(libc::EINVAL)?;
        let fd = call::open(path.as_c_str(), libc::O_RDONLY, 0);
        if fd < 0 {
            return Err(process::errno());
        }
        let maps = Self(fd);
        let (mut piece, mut all) = ([0; 4096], 0);
        loop {
            match usize::try_from(call::read(maps.0, &mut piece)) {
                Ok(0) => return Ok(all),
                Ok(n) => {
                    self.write(&piece[..n])?;
                    all += n as u64;
                }
                Err(_) if process::errno() == libc::EINTR => {}
                Err(_) => return Err(process::errno()),
            }
        }
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { call::close(self.0) };
    }
}
