//! System calls that restrict the program or change namespaces, for interposers of the C library's
//! functions. Failure: -1 and `errno`.
//!
//! **Unsafe.** Makes system calls with the caller's arguments.

use core::ffi::{c_int, c_ulong};

/// What `setns` answers to a process with several threads for a namespace of time.
pub const EUSERS: c_int = libc::EUSERS;
/// `prctl`'s operation that loads a filter of system calls, or allows the least of them.
pub const SET_SECCOMP: c_int = libc::PR_SET_SECCOMP;
/// `prctl`'s operation that an unprivileged program must do before it loads a filter.
pub const SET_NO_NEW_PRIVS: c_int = libc::PR_SET_NO_NEW_PRIVS;

/// `unshare(2)`.
pub fn unshare(flags: c_int) -> c_int {
    // SAFETY: the call touches no memory of the process.
    unsafe { libc::syscall(libc::SYS_unshare, flags) as c_int }
}

/// `setns(2)`.
pub fn setns(fd: c_int, kind: c_int) -> c_int {
    // SAFETY: the call touches no memory of the process.
    unsafe { libc::syscall(libc::SYS_setns, fd, kind) as c_int }
}

/// `prctl(2)`.
/// # Safety
/// As the system call, whose arguments may be addresses.
pub unsafe fn prctl(operation: c_int, arguments: [c_ulong; 4]) -> c_int {
    let [a, b, c, d] = arguments;
    // SAFETY: by the contract.
    unsafe { libc::syscall(libc::SYS_prctl, operation, a, b, c, d) as c_int }
}
