//! Names of anonymous mappings, which `/proc/PID/maps` and `smaps` show as `[anon:NAME]`.
//!
//! **State.** Off until [`turn`], which tries one. The system's first refusal turns them off: Linux
//! before 5.17 and kernels without `CONFIG_ANON_VMA_NAME`, as Debian's, refuse each. Parts that are
//! split off a mapping keep its name, and mappings of different names do not join.
//!
//! **Cost.** A system call for each named mapping; none while off.
//! **Unsafe.** Calls `prctl` on the caller's ranges, which changes no contents.

use crate::{mapping, process, thp};
use core::ffi::{CStr, c_ulong};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub const HEAP: &CStr = c"craton: heap";
pub const METADATA: &CStr = c"craton: metadata";
pub const HUGE: &CStr = c"craton: huge objects and caches";
pub const TABLES: &CStr = c"craton: tables";
pub const STACK: &CStr = c"craton: stack of its thread";
pub const GUARDED: &CStr = c"craton: debugging kit";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Stays off where the system refuses names.
pub fn turn(on: bool) {
    IS_ON.store(on, Relaxed);
    let page = process::page_size();
    if on && let Some(at) = mapping::map(page, page) {
        mapping::unmap(at, page);
    }
}

/// Until the system's first refusal.
pub fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Whole machine pages of one mapping. Keeps `errno`.
pub(crate) fn label(at: usize, bytes: usize, name: &CStr) {
    if is_on() && thp::may_query() && !is_named(at, bytes, name) {
        IS_ON.store(false, Relaxed);
    }
}

#[cold]
fn is_named(at: usize, bytes: usize, name: &CStr) -> bool {
    let saved = process::errno();
    let (at, bytes) = (at as c_ulong, bytes as c_ulong);
    // SAFETY: a name changes no contents; the kernel copies it.
    let done =
        unsafe { libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME as c_ulong, at, bytes, name.as_ptr()) };
    process::set_errno(saved);
    done == 0
}

#[cfg(all(test, not(loom)))]
mod tests;
