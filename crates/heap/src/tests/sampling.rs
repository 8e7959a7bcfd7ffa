//! Which requests become samples of the profile.

use super::recorder::{ended, set_before_sample, watched};
use super::world::World;
use crate::hooks::Hooks;
use crate::misuse::Misuse;
use crate::size_class;
use crate::thread_cache::ThreadCache;
use craton_base::PAGE_SIZE;
use std::vec::Vec;

const SIZE: usize = 64;

fn is_armed<H: Hooks>(w: &World<H>) -> bool {
    w.cache().is_armed(size_class::class_of(SIZE))
}

#[test]
fn neither_frees_nor_the_place_in_a_pattern_decide_which_request_is_the_sample() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    set_before_sample(6);
    w.cache().set_countdown(10);
    let first = w.take(class);
    assert!(is_armed(&w) && ended() == [class], "the first request ended the countdown");
    for _ in 1..6 {
        assert!(!w.cache().is_empty(class));
        let object = w.take(class);
        w.give(object).unwrap();
        assert!(is_armed(&w), "what was given back does not serve the next request");
    }
    assert!(w.cache().is_empty(class), "the sixth request behind is slow");
    // The process would take the sample now. The next refill does without it.
    let last = w.take(class);
    assert!(!is_armed(&w));
    w.give_all([first, last]);
    assert!(!w.cache().is_empty(class), "the list has its room again");
    w.empty();
}

#[test]
fn a_list_that_waits_for_its_sample_gets_its_room_back_when_the_program_only_frees() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let objects = w.take_all(class, 500);
    set_before_sample(8);
    w.cache().set_countdown(-1);
    let mut more = objects;
    while !is_armed(&w) {
        more.push(w.take(class));
    }
    let frees = more.len();
    w.give_all(more);
    assert!(!is_armed(&w), "after {frees} frees");
    w.empty();
}

#[test]
fn requests_are_counted_when_the_list_is_refilled() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    w.cache().set_countdown(1000 * SIZE as i64 - 1);
    let requests = (1..2000).find(|_| {
        w.take(class);
        !ended().is_empty()
    });
    assert!(requests.is_some_and(|n| (1000..1100).contains(&n)), "{requests:?}");
}

#[test]
fn a_flush_that_empties_a_list_keeps_its_pops_counted() {
    let (w, class) = (watched(8), size_class::class_of(SIZE));
    let objects = w.take_all(class, 10);
    assert!(!w.cache().is_empty(class));
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
    assert_eq!(w.cache().miscount(class), (9, 0), "all but the refill's own");
    w.give_all(objects);
    w.empty();
}

#[test]
fn m8_frees_behind_a_sample_leave_the_fast_path_until_it_ends_and_others_do_not() {
    let (w, class) = (watched(16), size_class::class_of(SIZE));
    let mut objects = w.take_all(class, 20);
    objects.sort();
    let page = |object: *mut u8| w.heap.page_of(object as usize);
    let sample = objects[7];
    assert!(w.heap.begin_sample(sample));
    assert!(!w.heap.begin_sample(objects[8]) && !w.heap.begin_sample(objects[3]), "one on a page");
    assert!(!w.heap.end_sample(objects[8]) && !w.heap.end_sample(objects[3]), "not the sample");
    // Further places of the page are cut meanwhile.
    let more = w.take_all(class, 200);
    let behind = *more.iter().find(|object| page(**object) == page(sample)).unwrap();
    let beyond = *more.iter().find(|object| page(**object) != page(sample)).unwrap();
    let pages = w.heap.view().pages;
    let class_of = |found: Option<(usize, usize)>| found.map(|(class, _)| class);
    let is_behind = |object: *mut u8| class_of(w.heap.recognise_behind_sample(object, pages)).is_some();
    // SAFETY: the cache is ours; what it takes is given up.
    let push = |object: *mut u8| unsafe { ThreadCache::push(w.cache, object) };
    for object in [sample, objects[8], behind] {
        assert!(!push(object));
        assert_eq!(is_behind(object), object != sample);
        let from = |object: *mut u8| class_of(w.heap.recognise_from_sample(object, pages));
        assert_eq!((from(object), w.heap.recognise(object)), (Some(class), Some(class)));
        assert_eq!((from(object.wrapping_add(16)), w.heap.recognise(object.wrapping_add(16))), (None, None));
        assert_eq!(w.usable(object), Ok(SIZE));
    }
    for object in [objects[6], beyond] {
        assert!(!is_behind(object) && w.heap.recognise(object) == Some(class));
        assert!(push(object), "its free is fast");
    }
    w.take_all(class, 2);
    w.give(behind).unwrap();
    assert_eq!(w.give(behind), Err(Misuse::Freed { size: SIZE }));
    let again = w.take(class);
    assert!(w.heap.end_sample(sample) && !w.heap.end_sample(sample));
    assert_eq!((is_behind(sample), w.heap.recognise(sample)), (false, Some(class)));
    assert!(push(sample) && push(again), "fast again, also for places that were cut meanwhile");
    w.give_all(objects.into_iter().filter(|object| *object != sample));
    w.give_all(more.into_iter().filter(|object| *object != behind));
    w.empty();
}

/// The places of `object`'s page that lie behind it.
fn behind<H: Hooks>(w: &World<H>, object: *mut u8, class: usize) -> usize {
    let (page, geometry) = (w.heap.page_of(object as usize).unwrap(), size_class::geometry(class));
    let slab = w.heap.address(geometry.slab_of(page)) as usize;
    let end = w.heap.address(page) as usize + PAGE_SIZE - slab;
    let (size, capacity) = (geometry.object as usize, geometry.capacity.into());
    end.div_ceil(size).min(capacity) - (object as usize - slab) / size - 1
}

#[test]
fn a_samples_place_is_the_last_of_its_page_where_places_are_still_to_be_cut() {
    for size in [16, 64, 208, 1024] {
        let (w, class) = (watched(16), size_class::class_of(size));
        let object = w.take(class);
        // SAFETY: the cache is ours; the object is new.
        let sample = unsafe { w.heap.place_sample(w.cache, object) };
        assert!(behind(&w, sample, class) * size < PAGE_SIZE / 64, "{size}: {}", behind(&w, sample, class));
        assert!(w.heap.begin_sample(sample));
        let others = w.take_all(class, 2 * PAGE_SIZE / size);
        assert!(others.contains(&object) && !others.contains(&sample), "they changed places");
        let near = |object: *mut u8| w.heap.page_of(object as usize) == w.heap.page_of(sample as usize);
        let before = others.iter().filter(|object| near(**object) && **object < sample);
        // SAFETY: the cache is ours.
        let is_known = |object: *mut u8| unsafe { ThreadCache::recognise(w.cache, object) }.is_some();
        assert!(before.clone().count() > 0 && before.clone().all(|object| is_known(*object)), "their frees are fast");
        assert!(!is_known(sample));
        w.give_all(others);
        assert!(w.heap.end_sample(sample));
        w.give(sample).unwrap();
        w.empty();
    }
}

#[test]
fn a_samples_place_is_chosen_among_free_objects_and_not_on_a_page_that_has_one() {
    let (w, class) = (watched(16), size_class::class_of(SIZE));
    let places = PAGE_SIZE / SIZE;
    let mut objects = w.take_all(class, 3 * places);
    objects.sort();
    let page = |object: *mut u8| w.heap.page_of(object as usize).unwrap();
    let (first, second) = (page(objects[0]), page(objects[2 * places]));
    let mut of = |wanted| -> Vec<*mut u8> { objects.extract_if(.., |object| page(*object) == wanted).collect() };
    let (mut first, mut second) = (of(first), of(second));
    let (kept, before) = (first.pop().unwrap(), second.len());
    assert!(w.heap.begin_sample(kept));
    w.empty();
    let some = [first.split_off(first.len() - 4), second.split_off(before - 6)].concat();
    let best = *second.last().unwrap_or(&kept);
    w.give_all(some.iter().copied());
    // SAFETY: the cache is ours; the object is new.
    let sample = unsafe { w.heap.place_sample(w.cache, w.take(class)) };
    assert!(page(sample) != page(kept) && sample > best && behind(&w, sample, class) == 0, "{sample:?}");
    assert!(w.heap.begin_sample(sample));
    let others: Vec<*mut u8> = w.take_all(class, some.len() - 1);
    assert!(others.iter().all(|object| some.contains(object) && *object != sample));
    assert!(w.heap.end_sample(sample) && w.heap.end_sample(kept));
    w.give_all(others.into_iter().chain(first).chain(second).chain(objects).chain([kept, sample]));
    w.empty();
}

#[test]
fn large_objects_and_addresses_of_nothing_have_no_page_with_a_sample() {
    let w = watched(16);
    let large = w.large(300 << 10);
    assert!(!w.heap.begin_sample(large) && !w.heap.end_sample(large));
    assert!(!w.heap.begin_sample(core::ptr::without_provenance_mut(64)));
    w.give(large).unwrap();
}
