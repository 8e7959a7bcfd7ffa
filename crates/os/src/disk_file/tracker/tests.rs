extern crate std;
use super::*;
use crate::persistent_file::descriptor::Descriptor;
use crate::persistent_file::tests::path;
use crate::persistent_file::{FileOptions, PAGE_BYTES, PersistentFile, Sharing};
use crate::tests::Tree;
use std::vec::Vec;

const PAGES: u64 = 600;

fn mapped(tree: &Tree) -> PersistentFile {
    let file = Descriptor::create(&path(tree, "heap")).unwrap();
    file.set_size(PAGES * PAGE_BYTES).unwrap();
    PersistentFile::map(file, PAGES * PAGE_BYTES, FileOptions::new(PAGES * PAGE_BYTES), Sharing::Private).unwrap()
}

fn numbers(memory: &PersistentFile, list: impl FnOnce(&mut dyn FnMut(Range<usize>))) -> Vec<u64> {
    let start = memory.mapped().start;
    let mut found = Vec::new();
    list(&mut |range| {
        found.extend(range.step_by(PAGE_BYTES as usize).map(|at| (at - start) as u64 / PAGE_BYTES));
    });
    found
}

fn store(memory: &PersistentFile, page: u64, value: u64) {
    memory.word(page * PAGE_BYTES + 8).store(value, core::sync::atomic::Ordering::Relaxed);
}

#[test]
fn recorded_writes_are_listed_once() {
    let tree = Tree::new();
    let memory = mapped(&tree);
    let tracker = Tracker::new(memory.mapped(), Tracking::Recorded).unwrap();
    if tracker.tracking() != Tracking::Recorded {
        return;
    }
    let taken = || numbers(&memory, |f| tracker.drain_written(memory.mapped(), f).unwrap());
    assert_eq!(taken().len(), PAGES as usize - 1, "absent pages, but for the one that the set-up took");
    let _ = memory.word(5 * PAGE_BYTES).load(core::sync::atomic::Ordering::Relaxed);
    assert_eq!(taken(), [], "a load is no write");
    [3, 4, 599].into_iter().for_each(|page| store(&memory, page, 1));
    assert_eq!(taken(), [3, 4, 599]);
    assert_eq!(taken(), []);
    store(&memory, 4, 1);
    assert_eq!(taken(), [4]);
    let every_other: Vec<_> = (0..PAGES).step_by(2).collect();
    every_other.iter().for_each(|page| store(&memory, *page, 2));
    assert_eq!(taken(), every_other);
    crate::mapping::drop_private(memory.mapped().start, 8 * PAGE_BYTES as usize);
    assert_eq!(taken(), [], "to drop a page is no write");
    store(&memory, 2, 1);
    assert_eq!(taken(), [2]);
    [3, 4].into_iter().for_each(|page| store(&memory, page, 1));
    assert_eq!(taken(), [3, 4]);
    store(&memory, 4, 3);
    let unwritten = numbers(&memory, |f| tracker.unwritten(memory.mapped(), f).unwrap());
    assert!(unwritten.contains(&3) && !unwritten.contains(&4) && !unwritten.contains(&5));
}

#[test]
fn private_pages_are_found_by_a_scan_and_by_reading_entries() {
    let tree = Tree::new();
    let memory = mapped(&tree);
    let mut tracker = Tracker::new(memory.mapped(), Tracking::Compared).unwrap();
    assert_eq!(tracker.tracking(), Tracking::Compared);
    let _ = memory.word(5 * PAGE_BYTES).load(core::sync::atomic::Ordering::Relaxed);
    [3, 512, 599].into_iter().for_each(|page| store(&memory, page, 1));
    for _ in 0..2 {
        assert_eq!(numbers(&memory, |f| tracker.private(memory.mapped(), f).unwrap()), [3, 512, 599]);
        tracker.scan = None;
    }
}
