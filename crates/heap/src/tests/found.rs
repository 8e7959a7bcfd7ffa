use super::world::{World, world};
use crate::owned::{CACHE_CLASS, Owned};
use crate::size_class::{self, LARGE, MORPHED};
use crate::thread_cache::ThreadCache;
use crate::{Found, Misuse};
use craton_base::{Density, PageRange, Pages};
use craton_pages::PageHeapExt;

const MIB: usize = 1 << 20;

/// `find` and `free` agree.
fn expect(w: &World, pointer: *mut u8, misuse: Misuse) {
    assert_eq!(w.heap.find(pointer), Found::Bad(misuse));
    assert_eq!(w.give(pointer), Err(misuse));
    assert_eq!(w.heap.recognise(pointer), None);
}

#[test]
fn an_object_of_a_class_is_known_by_its_start_alone() {
    let w = world(8, 256 << 10);
    for size in [16, 48, 3000, 20_000, 200_000] {
        let class = size_class::class_of(size);
        let (object, size) = (w.take(class), size_class::size_of_class(class));
        assert_eq!(w.heap.find(object), Found::Small { class });
        assert_eq!((w.heap.recognise(object), w.usable(object)), (Some(class), Ok(size)));
        expect(&w, object.wrapping_add(8), Misuse::Inside { offset: 8, size });
        // The other one keeps the slab, unless it has one object.
        let other = w.take(class);
        w.give(object).unwrap();
        let single = size_class::geometry(class).is_single();
        expect(&w, object, if single { Misuse::Unallocated } else { Misuse::Freed { size } });
        w.give(other).unwrap();
    }
}

#[test]
fn places_of_a_slab_that_are_no_objects_are_told_apart() {
    let w = world(8, 256 << 10);
    let object = w.take(size_class::class_of(48));
    let start = (object as usize & !8191) as *mut u8;
    expect(&w, object.wrapping_add(48 * 100), Misuse::Unallocated);
    expect(&w, start.wrapping_add(170 * 48), Misuse::Unallocated);
    expect(&w, start.wrapping_add(170 * 48 + 8), Misuse::Inside { offset: 8, size: 48 });
}

#[test]
fn each_place_of_a_slab_is_known_once_it_is_cut_and_the_tail_never() {
    for class in 1..=size_class::CLASSES {
        let (w, g) = (world(4, 0), size_class::geometry(class));
        let size = size_class::size_of_class(class);
        let object = w.heap.take_one(class);
        let slab = w.heap.address(g.slab_of(w.page(object)));
        for cut in 1..=usize::from(g.capacity) {
            let known = |i: usize| w.heap.recognise(slab.wrapping_add(i * size)) == Some(class);
            // SAFETY: the cache is the test's.
            let by_cache = |i: usize| unsafe { ThreadCache::recognise(w.cache, slab.wrapping_add(i * size)) }.is_some();
            w.cache().look_again(w.heap.view(), &w.heap.flush_requests);
            let all = 0..g.pages.bytes().0.div_ceil(size);
            assert_eq!(all.clone().filter(|i| known(*i)).count(), cut, "class {class}");
            assert!(all.into_iter().all(|i| known(i) == (i < cut) && by_cache(i) == known(i)), "class {class}");
            if cut < g.capacity.into() {
                assert_eq!(w.heap.take_one(class), slab.wrapping_add(cut * size));
            }
        }
    }
}

#[test]
fn the_pages_of_a_large_object_lead_to_its_start_until_it_is_freed() {
    let w = world(16, 0);
    let object = w.large(3 * MIB);
    let inside = Misuse::InsideLarge { start: object as usize, size: 3 * MIB };
    for offset in [1, 16, 8192, 3 * MIB - 1] {
        expect(&w, object.wrapping_add(offset), inside);
    }
    assert_eq!(w.heap.large_at(object as usize + 8192), None);
    w.give(object).unwrap();
    expect(&w, object, Misuse::Freed { size: 3 * MIB });
    expect(&w, object.wrapping_add(16), Misuse::Unallocated);
    expect(&w, object.wrapping_add(8192), Misuse::Unallocated);
    let small = w.large(300 << 10);
    assert_eq!((small, w.usable(small)), (object, Ok(38 * 8192)));
}

#[test]
fn behind_the_granted_pages_and_before_the_region_nothing_is_ours() {
    let w = world(16, 0);
    let object = w.take(1);
    let end = w.heap.address(craton_base::PageId(w.heap.pages().granted().pages().0));
    for foreign in
        [end, end.wrapping_add(8192), w.heap.layout().base.wrapping_sub(16) as *mut u8, core::ptr::null_mut()]
    {
        expect(&w, foreign, Misuse::Foreign);
        assert!(!w.heap.is_found_at_once(foreign));
    }
    expect(&w, end.wrapping_sub(8192), Misuse::Unallocated);
    assert!(w.heap.is_found_at_once(object));
}

#[test]
fn a_huge_object_is_known_whole_and_remembered_when_it_is_gone() {
    let w = world(4, 0);
    let object = w.large(40 * MIB);
    assert!(matches!(w.heap.find(object), Found::Huge(entry) if entry.bytes == 40 * MIB));
    expect(&w, object.wrapping_add(5 * MIB), Misuse::InsideLarge { start: object as usize, size: 40 * MIB });
    w.give(object).unwrap();
    expect(&w, object, Misuse::Freed { size: 40 * MIB });
    expect(&w, object.wrapping_add(5 * MIB), Misuse::Unallocated);
    expect(&w, object.wrapping_add(40 * MIB), Misuse::Foreign);
}

#[test]
fn objects_of_heaps_of_their_own_name_the_heap() {
    let w = world(4, 0);
    let span = w.heap.take_own(Pages(4), Pages(1), Density::Sparse).unwrap().range;
    let start = w.heap.address(span.first);
    w.heap.length(span.first).set_pages(span.len);
    w.heap.mark_own(span, false, 7, LARGE);
    let owned = Owned { heap: 7, class: LARGE.into(), first: span.first, bytes: 4 * 8192 };
    assert_eq!((w.heap.find(start), w.usable(start)), (Found::Owned(owned), Ok(4 * 8192)));
    expect(&w, start.wrapping_add(8192), Misuse::InsideLarge { start: start as usize, size: 4 * 8192 });
    // SAFETY: no object is given up.
    assert_eq!(unsafe { w.heap.take_back(Some(w.cache), start) }, Ok(Some(owned)));
    w.heap.mark_own(span, true, 9, CACHE_CLASS);
    expect(&w, start.wrapping_add(3 * 8192), Misuse::OfCache { cache: 9 });
    w.heap.unmark_own(span, true);
    w.heap.length(span.first).set_pages(Pages(0));
    expect(&w, start, Misuse::Unallocated);
    w.heap.give_own(span);
    assert_eq!(w.heap.in_use(), Pages(0));
}

#[test]
fn objects_of_a_class_in_a_heap_of_its_own_are_found_by_their_class() {
    let w = world(4, 0);
    let class = size_class::class_of(64);
    let object = w.take(class);
    let page = PageRange::new(w.page(object), Pages(1));
    w.heap.mark_own(page, true, 3, class as u8);
    let owned = Owned { heap: 3, class, first: page.first, bytes: 64 };
    assert_eq!(w.heap.find(object), Found::Owned(owned));
    assert_eq!(w.heap.find(object.wrapping_add(4)), Found::Bad(Misuse::Inside { offset: 4, size: 64 }));
    // SAFETY: the object is ours.
    unsafe { w.heap.set_mark(class, object) };
    assert_eq!(w.heap.find(object), Found::Bad(Misuse::Freed { size: 64 }));
    w.heap.wipe_mark(class, object);
    w.heap.set_marks_of_cut(page, class as u8);
    assert_eq!(w.give(object), Ok(()));
}

#[test]
fn a_page_of_two_classes_is_looked_up_under_the_lock_of_the_morphs() {
    let w = world(4, 0);
    let object = w.take(1);
    let page = w.page(object);
    assert_eq!(w.heap.recognise_morphed(object, w.heap.view().pages), None, "an ordinary slab");
    let held = w.heap.morphs.lock();
    assert!(w.heap.is_found_at_once(object), "no lock is needed");
    w.heap.set_marks(PageRange::new(page, Pages(1)), MORPHED, true);
    assert!(!w.heap.is_found_at_once(object));
    w.heap.set_marks(PageRange::new(page, Pages(1)), 1, true);
    drop(held);
    // A slab that settles between two looks is an ordinary one.
    assert_eq!(w.heap.find_morphed(object, page), Found::Small { class: 1 });
    assert_eq!(w.heap.find_again(object, page, 1), Found::Small { class: 1 });
    assert_eq!(w.heap.find_again(object, page, 2), Found::Small { class: 1 }, "its class has changed meanwhile");
}
