//! Forwards [`signals::ENDING`] and [`signals::ASKING`] to the program, but not the terminal's, as
//! of Ctrl-C, which the whole foreground group gets.
//!
//! **Unsafe.** Reads the kernel's description of a signal.

use crate::signals;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// 0 without a child.
static CHILD: AtomicI32 = AtomicI32::new(0);
static EARLY: AtomicI32 = AtomicI32::new(0);

pub fn start() {
    signals::catch(&signals::ENDING, handle);
    signals::catch(&signals::ASKING, handle);
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel's live siginfo_t.
    if unsafe { (*info).si_code } == libc::SI_KERNEL {
        return;
    }
    match Pid::from_raw(CHILD.load(Relaxed)) {
        None => EARLY.store(signal, Relaxed),
        Some(child) => send(child, signal),
    }
}

/// Safe in a handler. The child is not reaped while `CHILD` is set.
fn send(child: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = kill_process(child, signal);
    }
}

pub fn to(child: &Child) {
    CHILD.store(child.id() as i32, Relaxed);
    send(Pid::from_child(child), EARLY.swap(0, Relaxed));
}

/// The caller reaps `child`.
///
/// # Errors
/// The system's error.
pub fn until_end(child: &Child) -> io::Result<()> {
    let id = WaitId::Pid(Pid::from_child(child));
    let ended = retry_on_intr(|| waitid(id.clone(), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    CHILD.store(0, Relaxed);
    Ok(ended.map(drop)?)
}
