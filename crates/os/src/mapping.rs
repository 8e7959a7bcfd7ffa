//! Separate mappings, for objects too large for the region.
//!
//! **Unsafe.** Calls `mmap`, `munmap` and `mremap` on the caller's ranges.

use crate::label::{self, label};
use crate::pagemap::Pagemap;
use crate::process;
use core::ffi::CStr;
use core::ops::Range;
use core::ptr::null_mut;
use craton_base::HUGEPAGE_SIZE;

/// Zeroed whole machine pages; `align` is a power of two.
pub fn map(bytes: usize, align: usize) -> Option<usize> {
    map_as(label::TABLES, bytes, align)
}

pub(crate) fn map_as(name: &CStr, bytes: usize, align: usize) -> Option<usize> {
    unnamed(bytes, align).inspect(|at| label(*at, bytes, name))
}

fn unnamed(bytes: usize, align: usize) -> Option<usize> {
    // Linux 6.7 aligns these; neighbours are then one kernel mapping.
    if align == HUGEPAGE_SIZE && bytes.is_multiple_of(align) {
        let at = map_anywhere(bytes)?;
        if at.is_multiple_of(align) {
            return Some(at);
        }
        unmap(at, bytes);
    }
    let slack = if align > process::page_size() { align } else { 0 };
    let want = bytes.checked_add(slack)?;
    let at = map_anywhere(want)?;
    let end = at + want;
    let start = at.next_multiple_of(align.max(1));
    if start > at {
        unmap(at, start - at);
    }
    if end > start + bytes {
        unmap(start + bytes, end - start - bytes);
    }
    Some(start)
}

fn map_anywhere(bytes: usize) -> Option<usize> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel chooses. Not MAP_NORESERVE: the system should refuse
    // what it can never hold.
    let at = unsafe { libc::mmap(null_mut(), bytes, access, PRIVATE, -1, 0) };
    if at == libc::MAP_FAILED { None } else { Some(at as usize) }
}

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

pub fn unmap(at: usize, bytes: usize) {
    // SAFETY: the caller's, and used no more.
    unsafe { libc::munmap(at as *mut _, bytes) };
}

/// Reads as zeros then.
pub fn discard(at: usize, bytes: usize) {
    // SAFETY: the caller's; its contents may go.
    if unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) } == 0 {
        return;
    }
    // Locked memory does not go back; a new mapping is empty.
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as above.
    let new = unsafe { libc::mmap(at as *mut _, bytes, access, PRIVATE | libc::MAP_FIXED, -1, 0) };
    if new == libc::MAP_FAILED {
        // SAFETY: as above; the old mapping is still there.
        unsafe { (at as *mut u8).write_bytes(0, bytes) };
    }
}

/// The part shows its file again; returns the bytes dropped.
pub(crate) fn drop_private(at: usize, bytes: usize) -> usize {
    // SAFETY: the caller's; the file has its contents.
    let refused = unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) } != 0;
    if refused { 0 } else { bytes }
}

/// A whole mapping; contents survive.
pub fn remap(at: usize, old_bytes: usize, new_bytes: usize) -> Option<usize> {
    // SAFETY: the caller's whole mapping; it uses the new address.
    let to = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, libc::MREMAP_MAYMOVE) };
    (to != libc::MAP_FAILED).then_some(to as usize)
}

/// A whole mapping in place; `false`: no room behind it.
pub fn lengthen(at: usize, old_bytes: usize, new_bytes: usize) -> bool {
    // SAFETY: the caller's whole mapping, which keeps its place.
    let to = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, 0) };
    to != libc::MAP_FAILED
}

/// Moves a mapping; contents survive, hugepages if both are aligned.
pub fn replace(at: usize, old_bytes: usize, to: usize, new_bytes: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both are the caller's; `to`'s contents may go.
    let moved = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, flags, to as *mut libc::c_void) };
    moved != libc::MAP_FAILED
}

/// The source then reads as zeros. Linux 5.7.
pub fn move_memory(at: usize, bytes: usize, to: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: as in `replace`; the source keeps its place.
    let moved = unsafe { libc::mremap(at as *mut _, bytes, bytes, flags, to as *mut libc::c_void) };
    moved != libc::MAP_FAILED
}

pub fn touch(at: usize) {
    // SAFETY: the caller's; contents stay.
    unsafe { (at as *mut u8).write_volatile(0) };
}

pub fn advise_huge(at: usize, bytes: usize) {
    // SAFETY: advice changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_HUGEPAGE) };
}

pub fn advise_small(at: usize, bytes: usize) {
    // SAFETY: advice changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
}

/// `false`: a debugger's breakpoint may be there.
/// # Safety
/// The process has not written to the part, all of one file.
pub unsafe fn drop_file_pages(part: Range<usize>) -> bool {
    let page = process::page_size();
    let whole = part.start & !(page - 1)..part.end.next_multiple_of(page);
    let is_unchanged = Pagemap::open().and_then(|pagemap| pagemap.is_unchanged(whole.clone()));
    if is_unchanged != Some(true) {
        return false;
    }
    let saved = process::errno();
    // SAFETY: by the contract, and just verified, the file has the same contents.
    let refused = unsafe { libc::madvise(whole.start as *mut _, whole.len(), libc::MADV_DONTNEED) } != 0;
    process::set_errno(saved);
    !refused
}
