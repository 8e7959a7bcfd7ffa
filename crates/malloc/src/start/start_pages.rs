//! Releases the pages of the library's file that only its start needs (`layout.ld`).
//!
//! **Unsafe.** Drops a part of the library's code.

use crate::statics::BEGUN;
use core::sync::atomic::Ordering::Relaxed;
use craton_os::{mapping, weak};

/// The start's two ends, in either order.
pub(crate) const BY_LOAD: u8 = 1;
pub(crate) const BY_SET_UP: u8 = 2;

#[inline(never)]
pub(crate) fn begun(by: u8) {
    let before = BEGUN.fetch_or(by, Relaxed);
    if before & by != 0 || before | by != BY_LOAD | BY_SET_UP {
        return;
    }
    // Only in `libcraton.so`.
    let (start, end) = (weak!("craton_start_begins"), weak!("craton_start_ends"));
    if start != 0 {
        // SAFETY: library code, never written.
        unsafe { mapping::drop_file_pages(start..end) };
    }
}
