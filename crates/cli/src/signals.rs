//! Handlers for the signals by which people and scripts end a program.
//!
//! **What.** [`catch`] installs a handler. A signal that the caller ignores, as under `nohup`,
//! stays ignored, also in programs started from here. Those get the default for others: `exec`
//! drops handlers.
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

/// Makes a file beyond the size limit (SIGXFSZ) an error of the write instead of the program's end.
/// A handler rather than SIG_IGN, since `exec` drops it.
pub fn keep_large_files_an_error() {
    extern "C" fn nothing(_signal: i32) {}
    // SAFETY: the handler does nothing, which is allowed at any moment.
    unsafe { libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) };
}

/// A handler: signal, its origin, and the interrupted state.
pub type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// The signals: from the terminal, from programs, and at a hang-up.
pub const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Installs `handler` for [`ENDING`]; it must be async-signal-safe.
pub fn catch(handler: Handler) {
    for signal in ENDING {
        // SAFETY: zeros are a valid sigaction, and the handler has the signature that SA_SIGINFO
        // asks for.
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
