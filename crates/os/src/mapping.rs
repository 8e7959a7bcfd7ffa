//! Separate mappings, for objects too large for the heap's region.
//!
//! **Unsafe.** Calls `mmap`, `munmap` and `mremap` on ranges that belong to the caller.

use crate::pagemap::Pagemap;
use crate::process;
use core::ops::Range;
use core::ptr::null_mut;
use craton_base::HUGEPAGE_SIZE;

/// Maps `bytes` (whole machine pages) of zeroed memory at a multiple of `align` (a power of two).
pub fn map(bytes: usize, align: usize) -> Option<usize> {
    // From Linux 6.7 on whole hugepages are mapped aligned; then neighbours are one kernel mapping.
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
    // Not MAP_NORESERVE: the system refuses what it could never hold, as programs expect.
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing of ours.
    let at = unsafe { libc::mmap(null_mut(), bytes, access, PRIVATE, -1, 0) };
    if at == libc::MAP_FAILED { None } else { Some(at as usize) }
}

const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Unmaps part or all of a mapping; the range is whole machine pages.
pub fn unmap(at: usize, bytes: usize) {
    // SAFETY: the caller owns the range and uses it no more.
    unsafe { libc::munmap(at as *mut _, bytes) };
}

/// Gives back the memory of part of a mapping, which then reads as zeros.
pub fn discard(at: usize, bytes: usize) {
    // SAFETY: the caller owns the range, and wants none of its contents.
    if unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) } == 0 {
        return;
    }
    // Locked memory does not go back. A new mapping in its place is empty, whatever follows it.
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as above.
    let new = unsafe { libc::mmap(at as *mut _, bytes, access, PRIVATE | libc::MAP_FIXED, -1, 0) };
    if new == libc::MAP_FAILED {
        // SAFETY: as above; the old mapping is still there.
        unsafe { (at as *mut u8).write_bytes(0, bytes) };
    }
}

/// Drops a private copy of a part of a file, which the part then shows again; returns the bytes
/// dropped, 0 if the system refuses (locked memory).
pub(crate) fn drop_private(at: usize, bytes: usize) -> usize {
    // SAFETY: the caller owns the part, whose contents are the file's.
    let refused = unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) } != 0;
    if refused { 0 } else { bytes }
}

/// Resizes a whole mapping, moving it if it must; contents survive. Returns its address.
pub fn remap(at: usize, old_bytes: usize, new_bytes: usize) -> Option<usize> {
    // SAFETY: the caller owns the whole mapping, and takes the new address for the old.
    let to = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, libc::MREMAP_MAYMOVE) };
    (to != libc::MAP_FAILED).then_some(to as usize)
}

/// Makes a whole mapping longer where it stands; `false` if what follows is not free.
pub fn lengthen(at: usize, old_bytes: usize, new_bytes: usize) -> bool {
    // SAFETY: the caller owns the whole mapping; without leave to move it keeps its place.
    let to = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, 0) };
    to != libc::MAP_FAILED
}

/// Moves a mapping to `to`, over what is there, and grows it; contents survive. The caller owns
/// both. Hugepages survive if both are hugepage-aligned.
pub fn replace(at: usize, old_bytes: usize, to: usize, new_bytes: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the caller owns both ranges, and what is at `to` may go.
    let moved = unsafe { libc::mremap(at as *mut _, old_bytes, new_bytes, flags, to as *mut libc::c_void) };
    moved != libc::MAP_FAILED
}

/// Moves part of a mapping's memory over `to`; the part then reads as zeros. From Linux 5.7 on.
pub fn move_memory(at: usize, bytes: usize, to: usize) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    // SAFETY: as in `replace`; the source loses its contents but not its place.
    let moved = unsafe { libc::mremap(at as *mut _, bytes, bytes, flags, to as *mut libc::c_void) };
    moved != libc::MAP_FAILED
}

/// Writes a zero to memory that reads as zeros: its first touch.
pub fn touch(at: usize) {
    // SAFETY: the memory is the caller's, and keeps its contents.
    unsafe { (at as *mut u8).write_volatile(0) };
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

/// Drops the pages of a mapped part of a file, which are read again on touch; returns whether it
/// did. Does nothing if a debugger has set a breakpoint there, or the system does not report that.
///
/// # Safety
/// The process has not written to the part, all pages of which are of one file.
pub unsafe fn drop_file_pages(part: Range<usize>) -> bool {
    let page = process::page_size();
    let whole = part.start & !(page - 1)..part.end.next_multiple_of(page);
    let is_unchanged = Pagemap::open().and_then(|pagemap| pagemap.is_unchanged(whole.clone()));
    if is_unchanged != Some(true) {
        return false;
    }
    let saved = process::errno();
    // SAFETY: by the contract, and as was just seen, the file has the same contents.
    let refused = unsafe { libc::madvise(whole.start as *mut _, whole.len(), libc::MADV_DONTNEED) } != 0;
    process::set_errno(saved);
    !refused
}
