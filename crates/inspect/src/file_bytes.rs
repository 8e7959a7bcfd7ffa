//! A file's bytes as memory.
//!
//! **Failure.** A file that gets shorter while it is mapped ends this program by SIGBUS.
//!
//! **Unsafe.** Maps the file, and hands out its bytes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::slice;

#[derive(Debug)]
pub struct FileBytes {
    at: *mut libc::c_void,
    len: usize,
}

// SAFETY: the mapping is only read while it is there, and its drop needs it alone.
unsafe impl Send for FileBytes {}
// SAFETY: as above.
unsafe impl Sync for FileBytes {}

impl FileBytes {
    /// # Errors
    /// The system's error.
    pub fn new(file: &File, len: usize) -> io::Result<Self> {
        if len == 0 {
            return Ok(Self { at: null_mut(), len });
        }
        let (access, how, fd) = (libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd());
        // SAFETY: a new mapping where the kernel chooses.
        let at = unsafe { libc::mmap(null_mut(), len, access, how, fd, 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { at, len }) }
    }

    pub fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: mapped for as long as `self` is; other programs' writes show only in pages that
        // were not read yet.
        unsafe { slice::from_raw_parts(self.at.cast(), self.len) }
    }
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: ours, and no slice of it is left.
            unsafe { libc::munmap(self.at, self.len) };
        }
    }
}
