//! Which requests become samples of the profile.

use super::recorder::{ended, set_before_sample, watched};
use super::world::World;
use crate::hooks::Hooks;
use crate::misuse::Misuse;
use crate::size_class;
use crate::thread_cache::ThreadCache;

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
fn m8_frees_near_a_sample_leave_the_fast_path_until_it_ends() {
    let (w, class) = (watched(16), size_class::class_of(SIZE));
    let objects = w.take_all(class, 20);
    let page = |object: *mut u8| w.heap.page_of(object as usize);
    let sample = objects[7];
    assert!(w.heap.begin_sample(sample));
    assert!(!w.heap.begin_sample(objects[8]), "one on a page");
    // Further places of the page are cut meanwhile.
    let more = w.take_all(class, 200);
    let beside = *more.iter().find(|object| page(**object) == page(sample)).unwrap();
    let beyond = *more.iter().find(|object| page(**object) != page(sample)).unwrap();
    let pages = w.heap.view().pages;
    let near = |object: *mut u8| w.heap.recognise_near_sample(object, pages).map(|(class, _)| class);
    // SAFETY: the cache is ours; what it takes is given up.
    let push = |object: *mut u8| unsafe { ThreadCache::push(w.cache, object) };
    for object in [sample, objects[0], beside] {
        assert!(!push(object));
        assert_eq!((near(object), w.heap.recognise(object)), (Some(class), Some(class)));
        assert_eq!((near(object.wrapping_add(16)), w.heap.recognise(object.wrapping_add(16))), (None, None));
        assert_eq!(w.usable(object), Ok(SIZE));
    }
    assert_eq!((near(beyond), w.heap.recognise(beyond)), (None, Some(class)));
    w.give(beside).unwrap();
    assert_eq!(w.give(beside), Err(Misuse::Freed { size: SIZE }));
    let again = w.take(class);
    assert!(w.heap.end_sample(sample) && !w.heap.end_sample(sample));
    assert_eq!((near(sample), w.heap.recognise(sample)), (None, Some(class)));
    assert!(push(sample) && push(again), "fast again, also for places that were cut meanwhile");
    w.give_all(objects.into_iter().filter(|object| *object != sample));
    w.give_all(more.into_iter().filter(|object| *object != beside));
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
