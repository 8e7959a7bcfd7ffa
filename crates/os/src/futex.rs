//! The system call `futex`. The caller tests again after any outcome; keeps `errno`.
//!
//! **Unsafe.** Calls `futex`.

use crate::process;
use craton_base::atomic::{AtomicU32, AtomicU64};

/// Perhaps a little less; `time` null: no limit.
pub(crate) fn wait(word: &AtomicU32, value: u32, time: *const libc::timespec) {
    call(word.as_ptr(), libc::FUTEX_WAIT, value, time);
}

pub(crate) fn wake(word: &AtomicU32, most: u32) {
    call(word.as_ptr(), libc::FUTEX_WAKE, most, core::ptr::null());
}

/// ns below 10⁹; true on time-out.
pub(crate) fn wait_half(word: &AtomicU64, value: u64, at_most_ns: Option<i64>) -> bool {
    let time = at_most_ns.map(|tv_nsec| libc::timespec { tv_sec: 0, tv_nsec });
    let time = time.as_ref().map_or(core::ptr::null(), |t| t as *const libc::timespec);
    call(lower_half(word), libc::FUTEX_WAIT, value as u32, time) == libc::ETIMEDOUT
}

#[cold]
pub(crate) fn wake_half(word: &AtomicU64) {
    call(lower_half(word), libc::FUTEX_WAKE, 1, core::ptr::null());
}

fn lower_half(word: &AtomicU64) -> *mut u32 {
    word.as_ptr().cast::<u32>().wrapping_add(usize::from(cfg!(target_endian = "big")))
}

fn call(word: *mut u32, operation: i32, value: u32, time: *const libc::timespec) -> i32 {
    let saved = process::errno();
    // SAFETY: the word outlives the call; the time is valid or null.
    let refused =
        unsafe { libc::syscall(libc::SYS_futex, word, operation | libc::FUTEX_PRIVATE_FLAG, value, time) } < 0;
    let problem = if refused { process::errno() } else { 0 };
    process::set_errno(saved);
    problem
}
