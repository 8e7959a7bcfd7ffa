//! Calls by which a program restricts itself, which our thread would spoil.
//!
//! **What.** `unshare` and `setns` are refused to a process with more than one thread, as it would be with ours. A filter of system calls
//! kills the process when a thread of which its author knew nothing makes others. So we stop the thread first, and then do what
//! the C library does: the system call.
//!
//! **Unsafe.** Exports names that the whole process calls, and passes arguments on.

use core::ffi::{c_int, c_ulong};
use craton_malloc::govern;
use craton_os::{process, restrict};

/// The answers to a process that has more threads than the call allows.
fn is_refused(result: &c_int) -> bool {
    *result == -1 && matches!(process::errno(), process::EINVAL | restrict::EUSERS)
}

/// Linux's `unshare`.
#[unsafe(no_mangle)]
pub extern "C" fn unshare(flags: c_int) -> c_int {
    govern::without_thread(|| restrict::unshare(flags), is_refused)
}

/// Linux's `setns`.
#[unsafe(no_mangle)]
pub extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    govern::without_thread(|| restrict::setns(fd, kind), is_refused)
}

/// Linux's `prctl`. What comes before a filter, or loads one, ends our thread for good.
///
/// # Safety
/// As the program's call. Arguments that it left out are whatever the registers hold, as in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(operation: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if matches!(operation, restrict::SET_SECCOMP | restrict::SET_NO_NEW_PRIVS) {
        govern::seal();
    }
    // SAFETY: by the contract.
    unsafe { restrict::prctl(operation, [a, b, c, d]) }
}
