//! The system call `futex`: to sleep while a word has a value, and to wake who does.
//!
//! **Failure.** Every outcome (woken, value changed, interrupted, time over) makes the caller look again. The system call's own error
//! number does not leak into the program's `errno`.
//!
//! **Unsafe.** Calls `futex`.

use crate::process;
use craton_base::atomic::AtomicU32;

/// Sleeps while the word has the value, but no longer than a time that is not null, and perhaps a little less.
pub(crate) fn wait(word: &AtomicU32, value: u32, time: *const libc::timespec) {
    call(word, libc::FUTEX_WAIT, value, time);
}

/// Wakes so many of those who sleep on the word.
pub(crate) fn wake(word: &AtomicU32, most: u32) {
    call(word, libc::FUTEX_WAKE, most, core::ptr::null());
}

fn call(word: &AtomicU32, operation: i32, value: u32, time: *const libc::timespec) {
    let saved = process::errno();
    // SAFETY: the word outlives the call, and the time is a valid one or null.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation | libc::FUTEX_PRIVATE_FLAG, value, time);
    }
    process::set_errno(saved);
}
