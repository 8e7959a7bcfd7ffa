//! Small system files, read into buffers on the stack.
//!
//! **Cost.** Three system calls a file, 1 KiB of stack a path. The caller keeps `errno`.
//! **Unsafe.** Calls `pread64`, `ioctl` and `close`.

use crate::{call, process};

#[derive(Clone)]
pub(crate) struct PathText {
    text: [u8; PathText::CAPACITY],
    len: usize,
}

impl PathText {
    pub(crate) const CAPACITY: usize = 1024;

    pub(crate) fn new(start: &[u8]) -> Option<Self> {
        let mut path = Self { text: [0; Self::CAPACITY], len: 0 };
        path.push(start).then_some(path)
    }

    /// `false`, unchanged, when it does not fit.
    pub(crate) fn push(&mut self, part: &[u8]) -> bool {
        let end = self.len + part.len();
        if end >= Self::CAPACITY || part.contains(&0) {
            return false;
        }
        self.text[self.len..end].copy_from_slice(part);
        self.text[end] = 0;
        self.len = end;
        true
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.text[self.len] = 0;
    }

    pub(crate) fn as_c_str(&self) -> &core::ffi::CStr {
        call::path(&self.text)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unread(pub(crate) i32);

impl Unread {
    fn now() -> Self {
        Self(process::errno())
    }

    pub(crate) fn is_missing(self) -> bool {
        matches!(self.0, libc::ENOENT | libc::ENODEV)
    }

    /// A retry may succeed.
    pub(crate) fn passes(self) -> bool {
        matches!(self.0, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR | libc::EAGAIN)
    }
}

pub(crate) struct File(i32);

impl File {
    pub(crate) fn open(path: &PathText) -> Result<Self, Unread> {
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        let fd = call::open(call::path(&path.text), flags, 0);
        if fd >= 0 { Ok(Self(fd)) } else { Err(Unread::now()) }
    }

    fn read(&self, into: &mut [u8]) -> Result<usize, Unread> {
        usize::try_from(call::read(self.0, into)).map_err(|_| Unread::now())
    }

    /// # Safety
    /// `question` is the address of the request's structure, to be read and written.
    pub(crate) unsafe fn ioctl(&self, request: libc::c_ulong, question: usize) -> libc::c_long {
        // SAFETY: by the contract.
        unsafe { libc::syscall(libc::SYS_ioctl, self.0, request, question) }
    }

    pub(crate) fn read_at(&self, mut at: u64, mut into: &mut [u8]) -> Option<()> {
        while !into.is_empty() {
            // SAFETY: the buffer has this length.
            let read = unsafe { call::read_at(self.0, into.as_mut_ptr().cast(), into.len(), at as i64) };
            let read = usize::try_from(read).ok().filter(|n| *n > 0)?;
            (at, into) = (at.checked_add(read as u64)?, &mut into[read..]);
        }
        Some(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { call::close(self.0) };
    }
}

pub(crate) fn read_start<'a>(path: &PathText, into: &'a mut [u8]) -> Result<&'a [u8], Unread> {
    let read = File::open(path)?.read(into)?;
    Ok(&into[..read])
}

pub(crate) struct Lines {
    file: File,
    buffer: [u8; Lines::LONGEST],
    from: usize,
    to: usize,
    ended: bool,
    error: Option<Unread>,
}

impl Lines {
    const LONGEST: usize = 2048;

    pub(crate) fn open(path: &PathText) -> Result<Self, Unread> {
        let file = File::open(path)?;
        Ok(Self { file, buffer: [0; Self::LONGEST], from: 0, to: 0, ended: false, error: None })
    }

    /// `Ok`: the lines ended at the file's end.
    pub(crate) fn outcome(&self) -> Result<(), Unread> {
        self.error.map_or(Ok(()), Err)
    }

    pub(crate) fn next_line(&mut self) -> Option<&[u8]> {
        let mut too_long = false;
        loop {
            let start = self.from;
            if let Some(len) = self.buffer[start..self.to].iter().position(|b| *b == b'\n') {
                self.from = start + len + 1;
                if !core::mem::take(&mut too_long) {
                    return Some(&self.buffer[start..start + len]);
                }
                continue;
            }
            if self.ended {
                self.from = self.to;
                return (start < self.to && !too_long).then(|| &self.buffer[start..self.to]);
            }
            self.buffer.copy_within(start..self.to, 0);
            (self.from, self.to) = (0, self.to - start);
            if self.to == Self::LONGEST {
                (self.to, too_long) = (0, true);
            }
            let read = self.file.read(&mut self.buffer[self.to..]).unwrap_or_else(|error| {
                self.error = Some(error);
                0
            });
            self.to += read;
            self.ended = read == 0;
        }
    }
}

#[cfg(test)]
mod tests;
