use super::*;
use crate::size_class::{CLASSES, LARGE, MARKS, MORPHED, OWNED};
use craton_base::Pages;
use std::vec::Vec;

fn map(pages: usize) -> PageMap {
    let marks: Vec<AtomicU32> = (0..pages).map(|_| AtomicU32::new(0)).collect();
    // SAFETY: a zero entry for each page, for ever.
    unsafe { PageMap::new(marks.leak().as_ptr()) }
}

fn span(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

#[test]
fn a_mark_names_its_list_and_comes_back_as_it_was() {
    let map = map(1);
    for mark in (0..=CLASSES as u8).chain([LARGE, MORPHED, OWNED]) {
        // SAFETY: the map has this page.
        unsafe {
            map.set(span(0, 1), mark, true);
            let entry = map.entry(0);
            assert_eq!((map.get(0), entry.list(), entry.cut()), (mark, mark as usize * LIST_BYTES, 0));
            assert!(entry.list() < MARKS * LIST_BYTES, "each mark has a list");
        }
    }
}

#[test]
fn the_first_page_is_marked_alone_or_all_of_the_span_and_none_beside_it() {
    let map = map(12);
    // SAFETY: the map has these pages.
    unsafe {
        map.set(span(2, 3), 5, false);
        map.set(span(6, 4), 7, true);
        let marks: Vec<u8> = (0..12).map(|page| map.get(page)).collect();
        assert_eq!(marks, [0, 0, 5, 0, 0, 0, 7, 7, 7, 7, 0, 0]);
        map.set(span(6, 4), 0, true);
        assert!((3..12).all(|page| map.get(page) == 0));
    }
}

#[test]
fn a_number_of_cut_places_stands_beside_the_mark_of_its_class_until_the_next_mark() {
    let map = map(4);
    // SAFETY: the map has these pages.
    unsafe {
        map.set(span(0, 4), 7, true);
        map.set_cut(span(1, 2), 7, 512);
        let all = || (0..4).map(|page| (map.get(page), map.entry(page).cut() / PLACE)).collect::<Vec<_>>();
        assert_eq!(all(), [(7, 0), (7, 512), (7, 512), (7, 0)]);
        map.set(span(1, 1), OWNED, true);
        map.set_cut(span(0, 3), 7, 3);
        assert_eq!(all(), [(7, 3), (OWNED, 0), (7, 3), (7, 0)], "another's page has no number");
        map.set(span(0, 4), 7, true);
        assert!(all().iter().all(|entry| *entry == (7, 0)));
    }
}

#[test]
fn the_nearest_marked_page_before_one_is_found_however_far() {
    let map = map(4000);
    // SAFETY: the map has these pages.
    unsafe {
        assert_eq!(map.marked_before(PageId(3999)), None);
        map.set(span(3, 3000), LARGE, false);
        assert_eq!(map.marked_before(PageId(2)), None);
        assert_eq!(map.marked_before(PageId(3)), Some((PageId(3), LARGE)));
        assert_eq!(map.marked_before(PageId(3999)), Some((PageId(3), LARGE)));
        map.set(span(100, 1), 4, true);
        assert_eq!(map.marked_before(PageId(99)), Some((PageId(3), LARGE)));
        assert_eq!(map.marked_before(PageId(3999)), Some((PageId(100), 4)));
    }
}
