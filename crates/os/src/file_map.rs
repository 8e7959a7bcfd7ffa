//! A growing file, written through windows of memory: stores survive however the process ends.
//!
//! **Units.** Bytes; windows and offsets are multiples of 4 KiB.
//! **Failure.** `errno`. Room is allocated first: a full disk is an error, not a signal. Programs
//! may close our descriptor: each use verifies the file.
//! **Unsafe.** Maps a file, and stores words there.

use crate::call;
use crate::process::errno;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct FileMap {
    fd: i32,
    identity: (u64, u64),
    at: *mut AtomicU64,
    bytes: usize,
}

// SAFETY: owns the mapping.
unsafe impl Send for FileMap {}

/// Of another recorder.
pub const IN_USE: i32 = libc::EWOULDBLOCK;
pub const NOT_A_FILE: i32 = libc::ENODEV;
pub const NO_FOLDER: i32 = libc::ENOENT;

pub fn reason(error: i32) -> Option<&'static str> {
    Some(match error {
        NOT_A_FILE => "not an ordinary file",
        libc::EACCES | libc::EPERM => "permission denied",
        NO_FOLDER => "no such folder",
        libc::ENOTDIR => "its folder is a file",
        libc::EISDIR => "it is a folder",
        libc::EROFS => "its file system can only be read",
        libc::ENOSPC | libc::EDQUOT => "no space left",
        libc::EFBIG => "beyond the limit on file sizes",
        _ => return None,
    })
}

impl FileMap {
    /// Locked and empty, mode 0600; `path` ends by 0.
    pub fn create(path: &[u8], bytes: usize) -> Result<Self, i32> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOCTTY | libc::O_NONBLOCK;
        // SAFETY: a new descriptor. Low numbers stay the program's.
        let fd = unsafe {
            let low = call::open(call::path(path), flags, 0o600);
            if low < 0 {
                return Err(errno());
            }
            let high = libc::fcntl(low, libc::F_DUPFD_CLOEXEC, 250);
            if high < 0 {
                low
            } else {
                call::close(low);
                high
            }
        };
        let map = Self { fd, identity: identity(fd), at: null_mut(), bytes: 0 };
        // SAFETY: our descriptor.
        let problem = unsafe {
            if !is_file(fd) {
                NOT_A_FILE
            } else if libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) != 0 || libc::ftruncate(fd, 0) != 0 {
                errno()
            } else {
                0
            }
        };
        let mapped = if problem == 0 { map.window(0, bytes) } else { Err(problem) };
        match mapped {
            Ok(at) => Ok(Self { at, bytes, ..map }),
            Err(problem) => {
                map.leave();
                Err(problem)
            }
        }
    }

    fn is_ours(&self) -> bool {
        identity(self.fd) == self.identity
    }

    fn window(&self, offset: u64, bytes: usize) -> Result<*mut AtomicU64, i32> {
        if !self.is_ours() {
            return Err(libc::EBADF);
        }
        let end = offset + bytes as u64;
        // A write beyond would raise a signal.
        if end > file_size_limit() {
            return Err(libc::EFBIG);
        }
        // SAFETY: our descriptor; a new mapping where the kernel chooses.
        unsafe {
            if call::allocate(self.fd, offset as i64, bytes as i64) != 0 {
                match errno() {
                    libc::EOPNOTSUPP | libc::ENOSYS if libc::ftruncate(self.fd, end as i64) == 0 => {}
                    problem => return Err(problem),
                }
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            match libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, self.fd, offset as i64) {
                libc::MAP_FAILED => Err(errno()),
                at => Ok(at.cast()),
            }
        }
    }

    pub fn next(&self, offset: u64, bytes: usize) -> Result<Self, i32> {
        let at = self.window(offset, bytes)?;
        Ok(Self { fd: self.fd, identity: self.identity, at, bytes })
    }

    /// The second word first: a reader that finds the first finds both.
    #[inline]
    pub fn store(&self, at: usize, words: [u64; 2]) {
        debug_assert!(at.is_multiple_of(16));
        assert!(at < self.bytes, "a store outside of the window");
        // SAFETY: in the window, which is ours and a multiple of 16 bytes long.
        let (first, second) = unsafe { (&*self.at.add(at / 8), &*self.at.add(at / 8 + 1)) };
        second.store(words[1].to_le(), Ordering::Relaxed);
        // ORDERING: pairs with the process's end, after which others read the file.
        first.store(words[0].to_le(), Ordering::Release);
    }

    pub fn unmap(self) {
        if self.bytes > 0 {
            crate::mapping::unmap(self.at as usize, self.bytes);
        }
    }

    pub fn finish(self, bytes: u64) {
        if self.is_ours() {
            // SAFETY: our descriptor.
            unsafe { libc::ftruncate(self.fd, bytes as i64) };
        }
        self.leave();
    }

    pub fn leave(self) {
        if self.is_ours() {
            // SAFETY: ours, and used no more.
            unsafe { call::close(self.fd) };
        }
        self.unmap();
    }
}

fn identity(fd: i32) -> (u64, u64) {
    status(fd).map_or((0, 0), |s| (s.st_dev, s.st_ino))
}

fn is_file(fd: i32) -> bool {
    status(fd).is_some_and(|s| s.st_mode & libc::S_IFMT == libc::S_IFREG)
}

fn status(fd: i32) -> Option<libc::stat> {
    // SAFETY: zeros are a valid `stat`.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &mut status) == 0).then_some(status)
    }
}

pub(crate) fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` can be written.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}
