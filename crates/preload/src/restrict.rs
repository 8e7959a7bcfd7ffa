//! Calls that stop our thread first: the kernel refuses `unshare` and `setns` to several threads,
//! and a system call filter would kill the process for our thread's calls.
//!
//! **Unsafe.** Exports names that the whole process calls.

use core::ffi::{c_int, c_ulong};
use craton_malloc::govern;
use craton_os::{process, restrict};

fn is_refused(result: &c_int) -> bool {
    *result == -1 && matches!(process::errno(), process::EINVAL | restrict::EUSERS)
}

#[unsafe(no_mangle)]
pub extern "C" fn unshare(flags: c_int) -> c_int {
    govern::without_thread(|| restrict::unshare(flags), is_refused)
}

#[unsafe(no_mangle)]
pub extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    govern::without_thread(|| restrict::setns(fd, kind), is_refused)
}

/// A filter ends our thread for good.
///
/// # Safety
/// As `prctl`; omitted arguments are what the registers hold, as in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(operation: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int {
    if matches!(operation, restrict::SET_SECCOMP | restrict::SET_NO_NEW_PRIVS) {
        govern::seal();
    }
    // SAFETY: by the contract.
    unsafe { restrict::prctl(operation, [a, b, c, d]) }
}
