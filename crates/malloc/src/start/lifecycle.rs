//! Load and exit of the library.
//!
//! **Unsafe.** Places function pointers in the sections that the dynamic linker walks.

use crate::front::free_what_waits;
use crate::govern::background::Errands;
use crate::observe::{profile_file, recording, stats};
use crate::options::remote::read_mailbox;
use crate::start::start_pages;
use crate::statics::{ERRANDS, SEGMENT, SHARED};
use crate::{debug, fork, options};
use core::ffi::{c_char, c_int};
use core::ptr;
use core::sync::atomic::{Ordering, Ordering::Relaxed};
use craton_os::{process, thread};

const CHORES: &Errands = &Errands { free_later: free_what_waits, read_mailbox, begin_recording: recording::begin };

// Loom's locks and atomics exist only in models.
#[used]
#[cfg_attr(not(loom), unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_start;

#[used]
#[cfg_attr(not(loom), unsafe(link_section = ".fini_array"))]
static AT_END: extern "C" fn() = at_end;

/// Perhaps long after the first malloc. The C library passes the environment.
extern "C" fn at_start(_argc: c_int, _argv: *const *const c_char, environment: *const *const c_char) {
    // ORDERING: Release pairs with the Acquire in `govern::errands`.
    ERRANDS.store(ptr::from_ref(CHORES).cast_mut(), Ordering::Release);
    SEGMENT.pid.store(process::id().into(), Relaxed);
    thread::at_fork(fork::before_fork, fork::after_fork_in_parent, fork::after_fork_in_child);
    thread::record_main();
    if !process::is_privileged() {
        // SAFETY: the C library passes constructors main's third argument.
        unsafe { options::from_environment(environment) };
    }
    SHARED.start(&SEGMENT);
    start_pages::begun(start_pages::BY_LOAD);
}

extern "C" fn at_end() {
    recording::end();
    stats::at_exit();
    profile_file::at_exit();
    debug::at_exit();
    SHARED.end(&SEGMENT);
}
