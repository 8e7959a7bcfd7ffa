//! Which requests become samples of the profile.

use super::recorder::{ended, events, set_before_sample, watched};
use super::world::World;
use crate::hooks::{Event, Hooks};
use crate::size_class;
use craton_base::PAGE_SIZE;

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
fn the_free_of_a_sample_is_reported_once_and_that_of_another_object_is_not() {
    let w = watched(16);
    let (sample, other) = (w.large(300 << 10), w.large(300 << 10));
    assert!(w.heap.set_sample(sample, true) && w.heap.is_sample(sample));
    assert!(!w.heap.set_sample(w.take(size_class::class_of(SIZE)), true), "only large objects can be marked");
    assert_eq!(w.usable(sample), Ok((300usize << 10).next_multiple_of(PAGE_SIZE)));
    events();
    w.give_all([sample, other]);
    let freed = |event: &Event| matches!(event, Event::SampleFreed { .. });
    let reported: std::vec::Vec<Event> = events().into_iter().filter(freed).collect();
    assert_eq!(reported, [Event::SampleFreed { at: sample }]);
    // The span may serve again, as an object that is no sample.
    let again = w.large(300 << 10);
    assert!(!w.heap.is_sample(again));
    w.give(again).unwrap();
    assert!(!events().iter().any(freed));
}
