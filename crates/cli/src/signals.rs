//! Handlers for the signals by which people and scripts end a program.
//!
//! **What.** [`catch`] installs a handler. A signal that the caller ignores, as `nohup` does, stays
//! ignored, here and in programs started from here. Others get the default there, since handlers
//! end with `exec`.
//!
//! **Unsafe.** Installs handlers, for which std has no call.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set by [`stop`]: measuring shall end, and what was measured be written.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// The handler of commands that measure.
pub extern "C" fn stop(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    STOP.store(true, Relaxed);
}

/// A file beyond the limit on sizes becomes an error of the write, not the end of this program.
/// Programs started from here get the default: unlike a disposition to ignore, a handler ends with
/// `exec`.
pub fn keep_large_files_an_error() {
    extern "C" fn nothing(_signal: i32) {}
    // SAFETY: the handler does nothing, which is allowed at any moment.
    unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) };
}

/// What the kernel calls: the signal, where it comes from, and the state that it interrupted.
pub type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// The signals: from the terminal, from other programs, and at the loss of the terminal.
pub const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Has `handler` called for [`ENDING`]; it may do only what is allowed in a signal handler.
pub fn catch(handler: Handler) {
    for signal in ENDING {
        // SAFETY: zeros are a valid sigaction, and the handler has the signature that SA_SIGINFO asks for.
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
