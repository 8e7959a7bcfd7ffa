//! System calls that a stop would interrupt.
//!
//! **What.** Some system calls of a stopped thread return `EINTR` without a signal (signal(7),
//! "Interruption of system calls by stop signals"). They have done nothing by then, so [`restart`]
//! makes the kernel restart them, with their whole time limits. On other processors than x86-64 the
//! kernel decides before the stop; [`is_interrupted`] finds such calls.
//!
//! **Unsafe.** Calls `ptrace`.

use crate::memory::Thread;

/// In the kernel's general registers.
const ANSWER_AT: usize = if cfg!(target_arch = "x86_64") { 10 * 8 } else { 0 };

pub(super) fn is_interrupted(thread: &Thread) -> bool {
    let word = thread.sets.first().and_then(|(_, bytes)| bytes.get(ANSWER_AT..)?.first_chunk());
    word.is_some_and(|word| i64::from_le_bytes(*word) == -i64::from(libc::EINTR))
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use libc::{c_long, user_regs_struct};
    use std::mem::offset_of;

    /// Restart, unless a handler runs first.
    const ERESTARTNOHAND: c_long = 514;
    /// Not in `libc`.
    const IO_PGETEVENTS: c_long = 333;
    /// They take nothing before they wait.
    const WAITS: [c_long; 17] = [
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_io_getevents,
        IO_PGETEVENTS,
        libc::SYS_io_uring_enter,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
    ];

    fn register(id: u32, at: usize) -> Option<c_long> {
        // SAFETY: glibc's wrapper makes a place for the word.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, id as i32, at, 0usize) };
        // -1 would be an error's number, which neither caller looks for.
        (word != -1).then_some(word)
    }

    pub fn restart(id: u32) {
        let (call, answer) = (offset_of!(user_regs_struct, orig_rax), offset_of!(user_regs_struct, rax));
        if register(id, answer) == Some(-c_long::from(libc::EINTR))
            && register(id, call).is_some_and(|call| WAITS.contains(&call))
        {
            // SAFETY: changes the other process only.
            unsafe { libc::ptrace(libc::PTRACE_POKEUSER, id as i32, answer, -ERESTARTNOHAND) };
        }
    }
}

/// The thread must be stopped, and not by a signal.
#[cfg(target_arch = "x86_64")]
pub(super) fn restart(id: u32) {
    x86_64::restart(id);
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn restart(_id: u32) {}

#[cfg(test)]
mod tests;
