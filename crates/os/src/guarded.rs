//! Address space in which pages are opened and closed: closed ones cannot be touched.
//!
//! **Units.** Bytes; ranges are whole machine pages.
//!
//! **Failure.** The system allows a process so many mappings (`vm.max_map_count`), and each open page between closed ones is one:
//! beyond that, [`open`] and [`close`] say no, and nothing has changed.
//!
//! **Unsafe.** Calls `mmap`, `mprotect` and `madvise` on ranges that belong to the caller.

use crate::small_file::{PathText, read_start};
use core::ptr::null_mut;

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
    // Nobody wants to see the zeros in a core file, nor a hugepage of them.
    for advice in [libc::MADV_NOHUGEPAGE, libc::MADV_DONTDUMP] {
        // SAFETY: advice on a range of ours changes no contents.
        unsafe { libc::madvise(at, bytes, advice) };
    }
    Some(at as usize)
}

/// Makes a closed range a mapping of its own, which is not joined with closed ones beside it.
pub fn set_apart(at: usize, bytes: usize) {
    // SAFETY: advice on a range of the caller's changes no contents.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_NOHUGEPAGE) };
}

/// Lets a part of what was reserved as zeros be written; it is part of core files then.
pub fn open_zeros(at: usize, bytes: usize) -> bool {
    // SAFETY: the caller owns the range.
    open(at, bytes) && unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DODUMP) == 0 }
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

/// Takes the memory behind the range away; it reads as zeros when it is opened next.
pub fn forget(at: usize, bytes: usize) {
    // SAFETY: the caller owns the range and needs what it holds no more.
    unsafe { libc::madvise(at as *mut _, bytes, libc::MADV_DONTNEED) };
}

/// How many mappings the system allows a process.
pub fn most_mappings() -> usize {
    let mut text = [0; 24];
    let read = PathText::new(b"/proc/sys/vm/max_map_count").and_then(|path| read_start(&path, &mut text).ok());
    // What Linux has by default.
    read.and_then(|text| crate::Decimal::parse(text.trim_ascii())).map_or(65_530, |n| n as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn what_is_closed_keeps_what_it_holds_until_it_is_forgotten() {
        let page = process::page_size();
        let at = reserve(3 * page).unwrap();
        assert!(open(at + page, page));
        let byte = (at + page) as *mut u8;
        // SAFETY: the page is ours, and open.
        unsafe {
            byte.write(7);
            assert!(close(at + page, page) && open(at + page, page));
            assert_eq!(byte.read(), 7);
            forget(at + page, page);
            assert_eq!(byte.read(), 0);
        }
        crate::mapping::unmap(at, 3 * page);
        assert!(!open(at, page), "what is not mapped cannot be opened");
        assert!(most_mappings() >= 1000);
    }
}
