//! Address space of open and closed pages; the latter fault. Ranges: whole machine pages, in bytes.
//!
//! **Failure.** Each open page between closed ones is a mapping, limited by `vm.max_map_count`:
//! beyond it, [`open`] and [`close`] refuse without a change.
//! **Unsafe.** Calls `mmap`, `mprotect` and `madvise` on ranges that belong to the caller.

use crate::small_file::{PathText, read_start};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Reserves address space, all closed.
pub fn reserve(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing of ours.
    let at = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at as usize)
}

/// Reserves address space that reads as zeros and cannot be written until it is opened.
pub fn reserve_zeros(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: as in `reserve`.
    let at = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    // Zeros are useless in core files and as hugepages.
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
        // SAFETY: advice on a range of ours changes no contents.
        unsafe { libc::madvise(at, bytes, advice) };
    }
    Some(at as usize)
}

/// Makes a closed range a separate mapping, never joined with closed neighbours.
pub fn set_apart(at: usize, bytes: usize) {
    // SAFETY: advice on a range of the caller's changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
}

/// Makes part of the reserved zeros writable and part of core files.
fn open_zeros(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range.
    open(at, bytes) && unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DODUMP) == 0 }
}

/// Which parts of a range that was reserved as zeros can be written: a bit for each, 64 to a word.
pub struct Opened<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Opened<WORDS> {
    #[expect(clippy::new_without_default, reason = "a value to begin a static with")]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// Whether a part can be written.
    pub fn has(&self, part: usize) -> bool {
        self.0[part / 64].load(Relaxed) >> (part % 64) & 1 != 0
    }

    /// Makes a part at `at` writable; `false` if refused. Racing calls do no harm.
    pub fn open(&self, part: usize, at: usize, bytes: usize) -> bool {
        if self.has(part) {
            return true;
        }
        let is_open = open_zeros(at, bytes);
        self.0[part / 64].fetch_or(u64::from(is_open) << (part % 64), Relaxed);
        is_open
    }
}

/// Lets the range be read and written.
pub fn open(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range.
    unsafe { libc::mprotect(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Closes the range; what it holds survives.
pub fn close(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range, and does not touch it before it is opened again.
    unsafe { libc::mprotect(at as *mut _, bytes, libc::PROT_NONE) == 0 }
}

/// Installs and removes guard pages (`include/uapi/asm-generic/mman-common.h`).
const MADV_GUARD_INSTALL: i32 = 102;
const MADV_GUARD_REMOVE: i32 = 103;

/// Installs guard pages (MADV_GUARD_INSTALL, Linux 6.13) and drops the contents, without splitting
/// the mapping. `false` if refused, as for locked memory.
pub fn shut(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range, and needs what it holds no more.
    unsafe { libc::madvise(at as *mut _, bytes, MADV_GUARD_INSTALL) == 0 }
}

/// Puts a new mapping in the range's place, open but shut; `false` if one of both is refused.
pub fn renew_shut(at: usize, bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller owns the range, and needs what it holds no more.
    let new = unsafe { libc::mmap(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if new == libc::MAP_FAILED {
        return false;
    }
    set_apart(at, bytes);
    shut(at, bytes)
}

/// Opens what [`shut`] closed: it reads as zeros.
pub fn unshut(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range; what is not shut stays as it is.
    unsafe { libc::madvise(at as *mut _, bytes, MADV_GUARD_REMOVE) == 0 }
}

/// Takes the memory behind the range away; it reads as zeros when it is opened next.
pub fn discard(at: usize, bytes: usize) {
    // SAFETY: the caller owns the range and needs what it holds no more.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) };
}

/// How many mappings the system allows a process.
pub fn most_mappings() -> usize {
    let mut text = [0; 24];
    let read = PathText::new(b"/proc/sys/vm/max_map_count").and_then(|path| read_start(&path, &mut text).ok());
    // Linux's default.
    read.and_then(|text| craton_tables::amount::decimal(text.trim_ascii())).map_or(65_530, |n| n as usize)
}

#[cfg(all(test, not(loom)))]
mod tests;
