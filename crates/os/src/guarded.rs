//! Address space of open and closed pages; the latter fault. Ranges are whole machine pages.
//!
//! **Failure.** Each open page between closed ones is a mapping, limited by `vm.max_map_count`.
//! **Unsafe.** Calls `mmap`, `mprotect` and `madvise` on the caller's ranges.

use crate::label::{self, label};
use crate::small_file::{PathText, read_start};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub fn reserve(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping where the kernel chooses.
    let at = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    label(at as usize, bytes, label::GUARDED);
    Some(at as usize)
}

/// Reads as zeros; closed to writes until opened.
pub fn reserve_zeros(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: as in `reserve`.
    let at = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    // Useless in core files and as hugepages.
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
        // SAFETY: advice on our range changes no contents.
        unsafe { libc::madvise(at, bytes, advice) };
    }
    label(at as usize, bytes, label::GUARDED);
    Some(at as usize)
}

/// The new mapping never joins closed neighbours.
pub fn split_off(at: usize, bytes: usize) {
    // SAFETY: advice changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
}

fn open_zeros(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's range.
    open(at, bytes) && unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DODUMP) == 0 }
}

/// A bit for each part.
pub struct Opened<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Opened<WORDS> {
    #[expect(clippy::new_without_default, reason = "a value to begin a static with")]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    pub fn has(&self, part: usize) -> bool {
        self.0[part / 64].load(Relaxed) >> (part % 64) & 1 != 0
    }

    /// Racing calls do no harm.
    pub fn open(&self, part: usize, at: usize, bytes: usize) -> bool {
        if self.has(part) {
            return true;
        }
        let is_open = open_zeros(at, bytes);
        self.0[part / 64].fetch_or(u64::from(is_open) << (part % 64), Relaxed);
        is_open
    }
}

pub fn open(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's range.
    unsafe { libc::mprotect(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Contents survive.
pub fn close(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's range, not touched until opened.
    unsafe { libc::mprotect(at as *mut _, bytes, libc::PROT_NONE) == 0 }
}

const MADV_GUARD_INSTALL: i32 = 102;
const MADV_GUARD_REMOVE: i32 = 103;

/// Guard pages (Linux 6.13): drops contents, does not split the mapping. `false`: refused (locked).
pub fn shut(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's range; its contents may go.
    unsafe { libc::madvise(at as *mut _, bytes, MADV_GUARD_INSTALL) == 0 }
}

/// A new mapping in place, open but shut.
pub fn renew_shut(at: usize, bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's range; its contents may go.
    let new = unsafe { libc::mmap(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if new == libc::MAP_FAILED {
        return false;
    }
    split_off(at, bytes);
    shut(at, bytes)
}

/// Undoes [`shut`]: reads as zeros.
pub fn unshut(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller's range; open pages stay.
    unsafe { libc::madvise(at as *mut _, bytes, MADV_GUARD_REMOVE) == 0 }
}

/// Reads as zeros when opened next.
pub fn discard(at: usize, bytes: usize) {
    // SAFETY: the caller's range; its contents may go.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) };
}

pub fn most_mappings() -> usize {
    let mut text = [0; 24];
    let read = PathText::new(b"/proc/sys/vm/max_map_count").and_then(|path| read_start(&path, &mut text).ok());
    read.and_then(|text| craton_tables::amount::decimal(text.trim_ascii())).map_or(65_530, |n| n as usize)
}

#[cfg(all(test, not(loom)))]
mod tests;
