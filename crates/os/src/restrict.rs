//! System calls that restrict the program, for interposers.
//!
//! **Unsafe.** System calls with the caller's arguments.

use core::ffi::{c_int, c_ulong};

/// Of `setns` on a time namespace, with several threads.
pub const EUSERS: c_int = libc::EUSERS;
pub const SET_SECCOMP: c_int = libc::PR_SET_SECCOMP;
pub const SET_NO_NEW_PRIVS: c_int = libc::PR_SET_NO_NEW_PRIVS;

pub fn unshare(flags: c_int) -> c_int {
    // SAFETY: touches no memory.
    unsafe { libc::syscall(libc::SYS_unshare, flags) as c_int }
}

pub fn setns(fd: c_int, kind: c_int) -> c_int {
    // SAFETY: touches no memory.
    unsafe { libc::syscall(libc::SYS_setns, fd, kind) as c_int }
}

/// # Safety
/// As the system call, whose arguments may be addresses.
pub unsafe fn prctl(operation: c_int, arguments: [c_ulong; 4]) -> c_int {
    let [a, b, c, d] = arguments;
    // SAFETY: by the contract.
    unsafe { libc::syscall(libc::SYS_prctl, operation, a, b, c, d) as c_int }
}
