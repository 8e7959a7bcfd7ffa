//! Handlers for the signals by which people and scripts end or ask a program. Ignored signals, as
//! under `nohup`, stay so; started programs get the default for others: `exec` drops handlers.
//!
//! **Unsafe.** Installs handlers, which std cannot.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub static STOP: AtomicBool = AtomicBool::new(false);

pub extern "C" fn stop(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    STOP.store(true, Relaxed);
}

/// Makes SIGXFSZ an error of the write. `exec` would keep SIG_IGN.
pub fn keep_large_files_an_error() {
    extern "C" fn nothing(_signal: i32) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) };
}

/// Ctrl-C ends the programs that this one starts, and not it: `exec` drops the handler.
pub fn outlive_interrupts() {
    extern "C" fn nothing(_signal: i32) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGINT, nothing as *const () as libc::sighandler_t) };
}

pub type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

pub const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// By which servers reopen their logs, print what they do, or wind down.
pub const ASKING: [i32; 5] = [libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGWINCH];

/// The handler must be async-signal-safe.
pub fn catch(signals: &[i32], handler: Handler) {
    for signal in signals.iter().copied() {
        // SAFETY: zeros are a valid sigaction; the signature is SA_SIGINFO's.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            if libc::sigaction(signal, null_mut(), &mut action) != 0 || action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, null_mut());
        }
    }
}
