use super::*;
use crate::hooks::NoHooks;
use crate::tests::world::{World, hardened_world};
use std::collections::BTreeSet;
use std::vec::Vec;

const CLASS: usize = 4;
const SIZE: usize = 64;

fn world() -> World {
    hardened_world(8)
}

fn fill(object: *mut u8, size: usize) {
    // SAFETY: the object is the test's.
    unsafe { object.write_bytes(0xa5, size) };
}

/// Bytes that are not zero.
fn dirt(object: *mut u8, size: usize) -> usize {
    // SAFETY: the object is the test's.
    (0..size).filter(|at| unsafe { object.add(*at).read() } != 0).count()
}

#[test]
fn q1_an_object_waits_for_half_as_many_frees_as_the_newest_may_be() {
    for size in [16, 64, 100, 256, 1000, 4000, 20_000] {
        let w = world();
        let class = size_class::class_of(size);
        let all = w.take_all(class, 200);
        w.give_all(all);
        let mut frees = Vec::new();
        for turn in 0..500 {
            let object = w.take(class);
            if let Some(at) = frees.iter().rposition(|freed| *freed == object) {
                let since = frees.len() - 1 - at;
                assert!(2 * since >= wait(class) as usize - 1, "{size}: again after {since} frees in turn {turn}");
            }
            w.give(object).unwrap();
            frees.push(object);
        }
    }
}

#[test]
fn q2_what_goes_out_again_is_cleared() {
    for size in [16, 32, 48, 64, 80, 256, 500, 1024] {
        let w = world();
        let class = size_class::class_of(size);
        let size = size_class::size_of_class(class);
        for _ in 0..20 {
            let all = w.take_all(class, 50);
            // The link stays.
            let clean = size.min(crate::mark::CLEARED) - 8;
            assert!(all.iter().all(|object| dirt(object.wrapping_add(8), clean) == 0), "{size}");
            all.iter().for_each(|object| fill(*object, size));
            w.give_all(all);
        }
    }
}

#[test]
fn of_longer_objects_the_first_bytes_are_cleared() {
    let w = world();
    let class = size_class::class_of(20_000);
    for _ in 0..20 {
        let all = w.take_all(class, 8);
        for object in &all {
            assert_eq!(dirt(object.wrapping_add(8), crate::mark::CLEARED - 8), 0);
            fill(*object, 20_000);
        }
        w.give_all(all);
    }
}

#[test]
fn objects_without_a_cache_are_cleared_and_wait_too() {
    let w = world();
    let object = w.heap.take_one(CLASS);
    fill(object, SIZE);
    // SAFETY: a live object of the class.
    unsafe { w.heap.give_one(CLASS, object) };
    assert_eq!(dirt(object.wrapping_add(16), SIZE - 16), 0);
    let next: BTreeSet<_> = (0..40).map(|_| w.heap.take_one(CLASS)).collect();
    assert!(!next.contains(&object), "it waits");
    let out = w.heap.bytes_out();
    assert_eq!(out, 40 * SIZE as u64, "what waits is not out");
    w.heap.release(|| ());
    assert!((0..200).any(|_| w.heap.take_one(CLASS) == object), "until memory is released");
}

#[test]
fn fresh_objects_come_in_random_order() {
    let ascending = |objects: &[*mut u8]| objects.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let w = world();
    let objects = w.take_all(CLASS, 100);
    assert!((25..75).contains(&ascending(&objects)), "{}", ascending(&objects));
    assert_eq!(objects.iter().collect::<BTreeSet<_>>().len(), 100);
    let plain = crate::tests::world::world(8, 1 << 20);
    assert!(ascending(&plain.take_all(CLASS, 100)) > 90);
}

#[test]
fn freed_objects_come_back_in_another_order() {
    let w = world();
    let all = w.take_all(CLASS, 128);
    w.give_all(all.clone());
    let again = w.take_all(CLASS, 64);
    let places: Vec<_> = again.iter().filter_map(|object| all.iter().position(|other| other == object)).collect();
    let steps = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
    assert!(places.len() > 20 && steps < places.len() / 3, "{places:?}");
}

#[test]
fn two_heaps_of_one_seed_do_the_same() {
    let orders = || {
        let w = world();
        let first = w.take_all(CLASS, 100);
        let base = w.heap.layout().base;
        w.give_all(first);
        w.take_all(CLASS, 100).iter().map(|object| *object as usize - base).collect::<Vec<_>>()
    };
    assert_eq!(orders(), orders());
}

#[test]
fn nothing_is_lost() {
    let w = world();
    for round in 0..50 {
        let all = w.take_all(CLASS, 30 + 7 * round);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        w.give_all(all);
    }
    w.empty();
    assert_eq!((w.heap.bytes_out(), w.cache().bytes()), (0, 0));
}

#[test]
fn what_waits_counts_as_cached() {
    let w = world();
    let all = w.take_all(CLASS, 20);
    let before = w.cache().bytes();
    w.give_all(all);
    assert_eq!(w.cache().bytes(), before + 20 * SIZE);
}

#[test]
#[should_panic(expected = "NotFree")]
fn a_mark_that_was_overwritten_is_found_in_the_turn() {
    let w = world();
    let all = w.take_all(CLASS, 100);
    w.give_all(all[..20].iter().copied());
    // SAFETY: a wrong program's write.
    unsafe { all[3].add(8).cast::<usize>().write(1) };
    w.give_all(all[20..].iter().copied());
}

#[test]
#[should_panic(expected = "Lost")]
fn a_list_that_is_shorter_than_its_count_is_found_in_the_turn() {
    let w = world();
    let all = w.take_all(CLASS, 100);
    w.give_all(all[..20].iter().copied());
    // SAFETY: a link of the test's own list.
    unsafe { all[10].cast::<*mut u8>().write(end()) };
    w.give_all(all[20..].iter().copied());
}

#[test]
fn a_closed_class_takes_no_frees() {
    let w = world();
    w.cache().close(CLASS);
    let object = w.heap.take_one(CLASS);
    // SAFETY: a live object, given up if the push succeeds.
    assert!(!unsafe { ThreadCache::push(w.cache, object) });
    w.cache().turn::<NoHooks>(CLASS);
    assert!(w.cache().is_empty(CLASS) && !w.cache().is_turn_due(CLASS));
}
