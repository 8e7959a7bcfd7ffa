//! A page of the process that a file shows to others, however the process ends.
//!
//! **Threads.** A store between the copy and the mapping is lost: [`share`] early, or count again.
//! **Failure.** `errno`; the page stays. Room is allocated first: a full disk is an error, not a
//! signal.
//! **Unsafe.** Maps over the caller's page.

use crate::process::errno;
use crate::{call, file_map};
use core::ffi::c_void;

/// Machines with larger pages cannot map it alone.
pub const BYTES: usize = 4096;

const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// `path` ends by 0; the file must be new, and gets mode 0600.
///
/// # Safety
/// The caller's page of data, at a multiple of [`BYTES`], that other threads use by atomics alone.
pub unsafe fn share(page: *mut u8, path: &[u8]) -> Result<(), i32> {
    if crate::process::page_size() != BYTES {
        return Err(libc::EOPNOTSUPP);
    }
    if BYTES as u64 > file_map::file_size_limit() {
        return Err(libc::EFBIG);
    }
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let fd = call::open(call::path(path), flags, 0o600);
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: our descriptor; by the contract the page can be read, and replaced by its copy.
    let result = unsafe {
        let has_room = call::allocate(fd, 0, BYTES as i64) == 0 || matches!(errno(), libc::EOPNOTSUPP | libc::ENOSYS);
        if has_room && call::write_at(fd, core::slice::from_raw_parts(page, BYTES), 0) == BYTES as isize {
            over(page, libc::MAP_SHARED, fd)
        } else {
            Err(errno())
        }
    };
    // SAFETY: ours; the mapping keeps the file.
    unsafe { call::close(fd) };
    if result.is_err() {
        remove(path);
    }
    result
}

/// A private page with the contents.
///
/// # Safety
/// As [`share`], which succeeded; no other thread runs, as in a fork's child.
pub unsafe fn unshare(page: *mut u8) -> bool {
    let mut copy = [0u8; BYTES];
    // SAFETY: by the contract.
    unsafe {
        page.copy_to_nonoverlapping(copy.as_mut_ptr(), BYTES);
        let is_private = over(page, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).is_ok();
        if is_private {
            page.copy_from_nonoverlapping(copy.as_ptr(), BYTES);
        }
        is_private
    }
}

/// # Safety
/// As [`share`].
unsafe fn over(page: *mut u8, flags: i32, fd: i32) -> Result<(), i32> {
    // SAFETY: by the contract.
    let at = unsafe { libc::mmap(page.cast::<c_void>(), BYTES, ACCESS, flags | libc::MAP_FIXED, fd, 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { Ok(()) }
}

/// `path` ends by 0.
pub fn remove(path: &[u8]) -> bool {
    // SAFETY: a terminated path.
    unsafe { libc::unlink(call::path(path).as_ptr()) == 0 }
}

#[cfg(test)]
mod tests;
