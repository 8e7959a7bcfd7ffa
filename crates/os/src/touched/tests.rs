extern crate std;

use super::copy;
use crate::{mapping, process, thp};
use std::eprintln;
use std::prelude::v1::*;

const PAGES: usize = 200;

struct Pages {
    at: usize,
    bytes: usize,
}

impl Pages {
    fn new() -> Self {
        let bytes = PAGES * process::page_size();
        Self { at: mapping::map(bytes, process::page_size()).unwrap(), bytes }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped, and the test's alone.
        unsafe { core::slice::from_raw_parts_mut(self.at as *mut u8, self.bytes) }
    }

    fn write(&mut self, seed: usize, one_in: usize) {
        let page = process::page_size();
        for (i, part) in
            self.bytes().chunks_mut(page).enumerate().filter(|(i, _)| (i * 7 + seed).is_multiple_of(one_in))
        {
            part.fill((i + seed) as u8 | 1);
        }
    }

    fn resident(&self) -> usize {
        thp::mapped_bytes(self.at, self.bytes).map_or(0, |(all, _)| all / process::page_size())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        mapping::unmap(self.at, self.bytes);
    }
}

fn copies(seed: usize, source_one_in: usize, target_one_in: usize) {
    let (mut from, mut to) = (Pages::new(), Pages::new());
    from.write(seed, source_one_in);
    to.write(seed + 1, target_one_in);
    let (start, end, bytes) = (seed * 977 % 9000, seed * 1313 % 9000, 150 * process::page_size() + seed);
    let mut expected = to.bytes().to_vec();
    expected[end..end + bytes].copy_from_slice(&from.bytes()[start..start + bytes]);
    let before = from.bytes().to_vec();
    // SAFETY: two mappings of the test, longer each.
    unsafe { copy((from.at + start) as *const u8, (to.at + end) as *mut u8, bytes) };
    assert!(to.bytes() == &expected[..], "seed {seed}, {source_one_in}, {target_one_in}");
    assert!(from.bytes() == &before[..], "seed {seed}, {source_one_in}, {target_one_in}");
}

#[test]
fn a_copy_equals_its_source_and_leaves_the_rest_of_the_target() {
    for seed in 0..40 {
        for source in [1, 2, 9, 100, usize::MAX] {
            for target in [1, 3, 50, usize::MAX] {
                copies(seed, source, target);
            }
        }
    }
}

#[test]
fn pages_that_were_never_touched_stay_so_on_both_sides() {
    let (mut from, to) = (Pages::new(), Pages::new());
    let page = process::page_size();
    from.bytes()[3 * page] = 1;
    from.bytes()[90 * page] = 2;
    if from.resident() == 0 {
        eprintln!("skipped: this system does not tell which pages have contents");
        return;
    }
    // SAFETY: as above.
    unsafe { copy(from.at as *const u8, to.at as *mut u8, from.bytes) };
    assert_eq!((from.resident(), to.resident()), (2, 2));
}

#[test]
fn a_copy_keeps_errno() {
    let (from, to) = (Pages::new(), Pages::new());
    process::set_errno(77);
    // SAFETY: as above.
    unsafe { copy(from.at as *const u8, to.at as *mut u8, from.bytes) };
    assert_eq!(process::errno(), 77);
}
