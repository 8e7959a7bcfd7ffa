//! Complete slabs that classes keep.

use super::world::{World, world};
use crate::size_class;
use craton_base::Pages;
use craton_pages::PageHeapExt;
use std::vec::Vec;

const SLABS: usize = 60;

/// Several rounds, so that the slabs are kept.
fn swing(w: &World, class: usize) {
    let each = usize::from(size_class::geometry(class).capacity);
    for _ in 0..4 {
        let objects: Vec<_> = (0..SLABS * each).map(|_| w.take(class)).collect();
        objects.into_iter().for_each(|o| w.give(o).unwrap());
    }
}

#[test]
fn a_class_that_swings_leaves_the_page_heap_alone() {
    let w = world(16, 0);
    swing(&w, 4);
    let kept = w.heap.complete_pages();
    assert!(kept >= Pages(SLABS as u32 - 2), "{} pages", kept.0);
    let before = w.heap.pages.lock().stats();
    swing(&w, 4);
    assert_eq!(w.heap.pages.lock().stats(), before);
    w.empty();
}

#[test]
fn a_kept_slab_has_no_objects_until_it_is_cut_anew() {
    let w = world(16, 0);
    swing(&w, 4);
    let objects = w.take_all(4, SLABS * 128);
    w.give_all(objects.iter().copied());
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    assert!(w.heap.complete_pages() > Pages(0));
    let known = || objects.iter().filter(|object| w.heap.recognise(**object).is_some()).count();
    assert_eq!(known(), 0);
    let again = w.heap.take_one(4);
    assert_eq!((known(), w.heap.recognise(again)), (1, Some(4)));
    assert_eq!(w.give(again), Ok(()));
    w.empty();
}

#[test]
fn relief_makes_complete_slabs_go() {
    let w = world(16, 0);
    swing(&w, 4);
    assert!(w.heap.complete_pages() > Pages(0));
    w.heap.relieve(0);
    assert_eq!(w.heap.complete_pages(), Pages(0));
    w.empty();
}

#[test]
fn what_a_class_keeps_serves_another_one_before_the_heap_grows() {
    let w = world(16, 0);
    swing(&w, 4);
    let (kept, backed) = (w.heap.complete_pages(), w.heap.pages.lock().backed());
    let pages = size_class::geometry(40).pages.0;
    let each = usize::from(size_class::geometry(40).capacity);
    // All that the hugepages have.
    let slabs = (backed.pages().0 - 8 * pages) / pages;
    let objects: Vec<_> = (0..slabs as usize * each).map(|_| w.take(40)).collect();
    assert!(w.heap.complete_pages() < kept);
    assert_eq!(w.heap.pages.lock().backed(), backed);
    objects.into_iter().for_each(|o| w.give(o).unwrap());
    w.empty();
}

#[test]
fn a_refused_request_is_served_of_what_is_kept() {
    let w = world(1, 0);
    swing(&w, 4);
    assert!(w.heap.complete_pages() > Pages(SLABS as u32 / 2));
    let large = w.heap.allocate_large(200 * 8192, 1, false);
    assert!(!large.is_null());
    w.give(large).unwrap();
    w.empty();
}

#[test]
fn what_nobody_needs_goes_back_with_time_and_all_of_it_on_demand() {
    let w = world(16, 0);
    swing(&w, 4);
    let _ = w.heap.tick();
    assert!(w.heap.complete_pages() > Pages(0), "used since the last look");
    let _ = w.heap.tick();
    assert_eq!(w.heap.complete_pages(), Pages(0));
    swing(&w, 4);
    assert!(w.heap.complete_pages() > Pages(0));
    w.heap.release(|| ());
    assert_eq!(w.heap.complete_pages(), Pages(0));
    w.empty();
}
