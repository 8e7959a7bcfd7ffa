//! What happens when the library is loaded and when the process ends.
//!
//! **Unsafe.** Places function pointers in the sections that the dynamic linker walks.

use crate::clock::ProcessClock;
use crate::statics::SEGMENT;
use crate::{debug, front, options, stats, trace};
use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering::Relaxed;
use craton_os::{process, thread};

// Not with loom, which has no locks and atomics outside of its models.
#[used]
#[cfg_attr(not(loom), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_start;

#[used]
#[cfg_attr(not(loom), unsafe(link_section = ".fini_array"))]
static AT_END: extern "C" fn() = at_end;

/// Whether [`at_start`] has run: fork handlers are registered, and options known.
pub(crate) fn is_set_up() -> bool {
    SEGMENT.pid.load(Relaxed) != 0
}

/// Runs when the library is loaded, perhaps long after the first malloc. The C library passes the environment.
extern "C" fn at_start(_argc: c_int, _argv: *const *const c_char, environment: *const *const c_char) {
    SEGMENT.pid.store(process::id().into(), Relaxed);
    thread::at_fork(front::forks::before_fork, front::forks::after_fork_in_parent, front::forks::after_fork_in_child);
    thread::note_main();
    if !process::is_privileged() {
        // SAFETY: the C library passes main's third argument to constructors.
        unsafe {
            options::variable(environment, b"CRATON_TEST_CLOCK=").map(ProcessClock::set_speed);
            options::from_environment(environment);
        }
    }
}

extern "C" fn at_end() {
    trace::end();
    stats::at_exit();
    debug::at_exit();
}
