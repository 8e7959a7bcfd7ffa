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
        // SAFETY: within the test's mapping.
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
