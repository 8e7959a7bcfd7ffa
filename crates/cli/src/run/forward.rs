//! Signals that are meant for the program and reach `craton` instead.
//!
//! **What.** While the program runs as a child, the [`signals::ENDING`] sent to this process are sent on to it.
//! What the terminal sends (Ctrl-C) goes to the whole foreground group, the child included, and is not sent twice.
//!
//! **Threads.** One. The handler interrupts it: before the child is known it leaves the signal for [`to`] to send.
//!
//! **Unsafe.** Reads what the kernel says of a signal, sends signals, and waits without reaping, for which std has no call.

use crate::signals;
use std::io;
use std::mem::zeroed;
use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The child, 0 when there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the child was known.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Starts to catch the signals; to be called before the child is made.
pub fn start() {
    signals::catch(handle);
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a live siginfo_t.
    if unsafe { (*info).si_code } == libc::SI_KERNEL {
        return;
    }
    match CHILD.load(Relaxed) {
        0 => EARLY.store(signal, Relaxed),
        // SAFETY: a system call that is allowed in handlers; the child is not reaped while its number is here.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}

/// Sends the signals to `child` from now on, those that came already first.
pub fn to(child: &Child) {
    CHILD.store(child.id() as i32, Relaxed);
    let early = EARLY.swap(0, Relaxed);
    if early != 0 {
        // SAFETY: a pure system call; the child is not reaped.
        unsafe { libc::kill(child.id() as i32, early) };
    }
}

/// Waits until `child` has ended and stops sending it signals; the child is still to be reaped.
///
/// # Errors
/// What the system says.
pub fn until_end(child: &Child) -> io::Result<()> {
    loop {
        // SAFETY: zeros are a valid siginfo_t, which the call fills in.
        let waited = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            libc::waitid(libc::P_PID, child.id(), &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        let error = io::Error::last_os_error();
        if waited == 0 || error.kind() != io::ErrorKind::Interrupted {
            CHILD.store(0, Relaxed);
            return if waited == 0 { Ok(()) } else { Err(error) };
        }
    }
}
