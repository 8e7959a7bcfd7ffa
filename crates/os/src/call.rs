//! System calls that are no cancellation points.
//!
//! **What.** A thread cancelled in the C library's `open`, `write` and others (pthreads(7)) would
//! keep malloc's locks for ever.
//! **Unsafe.** Each has the preconditions of its call.

use core::ffi::{CStr, c_int, c_void};
use libc::{sigset_t, syscall, timespec};

/// Close-on-exec.
pub(crate) fn open(path: &CStr, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: a terminated path.
    unsafe { syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags | libc::O_CLOEXEC, mode) as c_int }
}

pub(crate) fn path(text: &[u8]) -> &CStr {
    debug_assert!(text.contains(&0));
    CStr::from_bytes_until_nul(text).unwrap_or_default()
}

/// # Safety
/// Nothing else uses the descriptor.
pub(crate) unsafe fn close(fd: c_int) -> c_int {
    // SAFETY: by contract.
    unsafe { syscall(libc::SYS_close, fd) as c_int }
}

pub(crate) fn read(fd: c_int, into: &mut [u8]) -> isize {
    // SAFETY: the buffer has this length.
    unsafe { syscall(libc::SYS_read, fd, into.as_mut_ptr(), into.len()) as isize }
}

/// # Safety
/// `len` bytes can be written at `into`.
pub(crate) unsafe fn read_at(fd: c_int, into: *mut c_void, len: usize, at: i64) -> isize {
    // SAFETY: by contract.
    unsafe { syscall(libc::SYS_pread64, fd, into, len, at) as isize }
}

pub(crate) fn write(fd: c_int, text: &[u8]) -> isize {
    // SAFETY: the buffer has this length.
    unsafe { syscall(libc::SYS_write, fd, text.as_ptr(), text.len()) as isize }
}

pub(crate) fn write_at(fd: c_int, text: &[u8], at: i64) -> isize {
    // SAFETY: the buffer has this length.
    unsafe { syscall(libc::SYS_pwrite64, fd, text.as_ptr(), text.len(), at) as isize }
}

pub(crate) fn allocate(fd: c_int, at: i64, bytes: i64) -> c_int {
    // SAFETY: touches no memory.
    unsafe { syscall(libc::SYS_fallocate, fd, 0, at, bytes) as c_int }
}

/// The part then reads as zeros.
pub(crate) fn punch(fd: c_int, at: i64, bytes: i64) -> c_int {
    let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: touches no memory.
    unsafe { syscall(libc::SYS_fallocate, fd, how, at, bytes) as c_int }
}

pub(crate) fn sync(fd: c_int) -> c_int {
    // SAFETY: touches no memory.
    unsafe { syscall(libc::SYS_fdatasync, fd) as c_int }
}

/// Also for children that end without a signal.
pub(crate) fn wait(child: c_int, status: &mut c_int) -> c_int {
    // SAFETY: writes `status`; usage is not requested.
    unsafe { syscall(libc::SYS_wait4, child, &raw mut *status, libc::__WALL, 0) as c_int }
}

/// Takes a pending signal of the set.
pub(crate) fn consume_signal(of: &sigset_t) {
    let now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: valid set and time; the kernel's sets are the first 8 bytes of the C library's.
    unsafe { syscall(libc::SYS_rt_sigtimedwait, &raw const *of, 0, &raw const now, 8) };
}

pub(crate) fn sleep(time: timespec) {
    // SAFETY: a valid time; the rest is not requested.
    unsafe { syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

/// Until a signal.
pub(crate) fn pause() {
    // SAFETY: no descriptors, no time, no memory.
    unsafe { syscall(libc::SYS_ppoll, 0, 0, 0, 0, 8) };
}
