//! Mappings of their own, for objects too large for the heap's region.
//!
//! **Unsafe.** Calls `mmap`, `munmap` and `mremap` on ranges that belong to the caller.

use crate::process;
use core::ptr::null_mut;

/// Maps `bytes` (a multiple of the machine's page size) of zeroed memory at a multiple of `align` (a power of two).
pub fn map(bytes: usize, align: usize) -> Option<usize> {
    let page = process::page_size();
    let slack = if align > page { align } else { 0 };
    let want = bytes.checked_add(slack)?;
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing of ours.
    let at = unsafe {
        libc::mmap(null_mut(), want, libc::PROT_READ | libc::PROT_WRITE, PRIVATE | libc::MAP_NORESERVE, -1, 0)
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    let (at, end) = (at as usize, at as usize + want);
    let start = at.next_multiple_of(align.max(1));
    if start > at {
        unmap(at, start - at);
    }
    if end > start + bytes {
        unmap(start + bytes, end - start - bytes);
    }
    Some(start)
}

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Gives back part or all of a mapping of ours; the range is whole machine pages.
pub fn unmap(at: usize, bytes: usize) {
    // SAFETY: the caller owns the range and uses it no more.
    unsafe { libc::munmap(at as *mut _, bytes) };
}

/// Makes a whole mapping longer or shorter, moving it if it must; contents survive. Returns where it is now.
pub fn remap(at: usize, old_bytes: usize, new_bytes: usize) -> Option<usize> {
    // SAFETY: the caller owns the whole mapping, and takes the new address for the old.
    let to = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, libc::MREMAP_MAYMOVE) };
    (to != libc::MAP_FAILED).then_some(to as usize)
}

/// Asks that the range be backed by hugepages where it can.
pub fn advise_huge(at: usize, bytes: usize) {
    // SAFETY: advice on a range of ours changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_HUGEPAGE) };
}

/// Asks that the range be backed by small pages.
pub fn advise_small(at: usize, bytes: usize) {
    // SAFETY: advice on a range of ours changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
}
