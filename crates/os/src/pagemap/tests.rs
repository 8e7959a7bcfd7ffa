extern crate std;

use super::Pagemap;
use crate::{mapping, process};
use std::eprintln;
use std::prelude::v1::*;

#[test]
fn many_parts_are_found_in_order_and_clipped_to_the_range() {
    let page = process::page_size();
    let at = mapping::map(300 * page, page).unwrap();
    for i in (1..300).step_by(3) {
        // SAFETY: in the mapping.
        unsafe { *((at + i * page) as *mut u8) = 1 };
    }
    let Some(pagemap) = Pagemap::open() else { return };
    let mut parts = Vec::new();
    if pagemap.touched(at + 4 * page..at + 298 * page, |part| parts.push(part)).is_none() {
        eprintln!("skipped: this system does not tell which pages have contents");
        return;
    }
    let expected: Vec<_> = (4..298).step_by(3).map(|i| at + i * page..at + (i + 1) * page).collect();
    assert_eq!(parts, expected);
    assert_eq!(pagemap.mapped_bytes(at..at + 300 * page), Some((100 * page, 0)));
    assert_eq!(pagemap.huge_bytes(at..at + 300 * page), Some(0));
    mapping::unmap(at, 300 * page);
}

#[test]
fn pages_of_a_file_go_unless_somebody_has_written_there() {
    let page = process::page_size();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, std::os::fd::AsRawFd::as_raw_fd(&file));
    // SAFETY: a new mapping where the kernel chooses.
    let at = unsafe { libc::mmap(core::ptr::null_mut(), 4 * page, access, libc::MAP_PRIVATE, fd, 0) } as usize;
    let word = |i: usize| (at + i * page) as *mut u64;
    // SAFETY: in the mapping.
    let before = unsafe { word(1).read_volatile() };
    let Some(pagemap) = Pagemap::open() else { return };
    let Some(is_unchanged) = pagemap.is_unchanged(at..at + 4 * page) else {
        eprintln!("skipped: this system does not tell which pages are of files");
        return;
    };
    assert!(is_unchanged);
    // SAFETY: not written to.
    assert!(unsafe { mapping::drop_file_pages(at + page + 8..at + 2 * page) });
    let is_there = pagemap.mapped_bytes(at + page..at + 2 * page) != Some((0, 0));
    assert!(!is_there, "the page is still mapped");
    // SAFETY: in the mapping.
    unsafe {
        assert_eq!(word(1).read_volatile(), before);
        word(2).write_volatile(!before);
        assert!(!mapping::drop_file_pages(at..at + 4 * page), "what was written would be lost");
        assert_eq!(word(2).read_volatile(), !before);
    }
    mapping::unmap(at, 4 * page);
}
