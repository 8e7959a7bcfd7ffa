//! Threads of several homes: slabs, transfers, and remote frees.

use super::world::{World, world};
use crate::shard::SHARDS;
use crate::size_class;
use craton_base::Pages;
use std::vec::Vec;

const CLASS: usize = 4;

fn owner(w: &World, object: *mut u8) -> usize {
    w.heap.record(w.page(object)).owner()
}

fn end(w: &World) {
    // SAFETY: the cache is ours.
    unsafe { w.heap.empty_cache(w.cache) };
}

#[test]
fn the_number_of_shards_only_grows_and_no_further_than_there_are() {
    let w = world(4, 0);
    let homes = |w: &World| (w.heap.homes(), w.heap.home(0), w.heap.home(7));
    assert_eq!(homes(&w), (1, 0, 0));
    w.heap.use_shards(0);
    assert_eq!(homes(&w), (1, 0, 0));
    w.heap.use_shards(3);
    assert_eq!(homes(&w), (3, 0, 1));
    w.heap.use_shards(2);
    assert_eq!(homes(&w), (3, 0, 1));
    w.heap.use_shards(1000);
    assert_eq!(w.heap.homes(), SHARDS);
}

#[test]
fn a_thread_fills_its_cache_from_the_slabs_of_its_home() {
    let w = world(16, 0);
    w.heap.use_shards(3);
    let threads: Vec<_> = (0..3).map(|home| w.at_home(home)).collect();
    for (home, thread) in threads.iter().enumerate() {
        let object = thread.take(CLASS);
        assert_eq!((thread.cache().home(), owner(&w, object)), (home, home));
        thread.give(object).unwrap();
        end(thread);
    }
    w.empty();
    assert_eq!(w.heap.slabs_in_shards(), [0; 3]);
}

#[test]
fn one_list_of_objects_from_several_homes_goes_back_to_each_of_them() {
    let w = world(16, 0);
    w.heap.use_shards(3);
    let threads: Vec<_> = (0..3).map(|home| w.at_home(home)).collect();
    let mut all: Vec<_> = (0..30).map(|n| threads[n % 3].take(CLASS)).collect();
    assert!((0..3).all(|home| all.iter().any(|object| owner(&w, *object) == home)));
    let slabs = w.heap.slabs_in_shards();
    threads.iter().for_each(end);
    let out = |w: &World| -> Vec<_> { (0..3).map(|home| w.heap.slabs(home, CLASS).stats().objects_out).collect() };
    assert_eq!(out(&w), [10; 3]);
    all.rotate_left(7);
    threads[1].give_all(all);
    assert_eq!(out(&w), [10; 3], "they wait in its cache");
    end(&threads[1]);
    assert_eq!((out(&w), w.heap.bytes_out()), (std::vec![0; 3], 0));
    assert_eq!(slabs, [1; 3]);
    w.empty();
    assert_eq!(w.heap.in_use(), Pages(0));
}

#[test]
fn with_one_shard_nothing_is_passed_on() {
    let w = world(8, 0);
    assert!(!w.heap.passes_on(0, CLASS));
    let batch = size_class::batch(CLASS) as usize;
    let chain = w.heap.take(0, CLASS, batch as u32);
    // SAFETY: the objects are the heap's, and given up.
    unsafe { w.heap.pass_on_or_give(0, CLASS, chain) };
    assert_eq!((w.heap.bytes_out(), w.heap.class_stats(CLASS).objects_out), (0, 0));
}

#[test]
fn a_full_batch_passes_to_a_thread_of_another_home_and_a_part_of_one_does_not() {
    let w = world(16, 0);
    w.heap.use_shards(2);
    let batch = size_class::batch(CLASS);
    assert!(w.heap.passes_on(1, CLASS) && !w.heap.passes_on(1, size_class::class_of(40 << 10)));
    let part = w.heap.take(1, CLASS, batch - 1);
    let n = part.len();
    // SAFETY: the objects are the heap's, and given up.
    unsafe { w.heap.pass_on_or_give(1, CLASS, part) };
    assert_eq!((n, w.heap.class_stats(CLASS).objects_out), (batch - 1, 0), "it went to its slabs");
    let mut full = w.heap.take(1, CLASS, batch);
    let (first, rest) = (full.head(), w.heap.class_stats(CLASS));
    // SAFETY: as above.
    unsafe { w.heap.pass_on_or_give(1, CLASS, core::mem::replace(&mut full, craton_slab::Chain::EMPTY)) };
    assert_eq!((w.heap.class_stats(CLASS).objects_out, w.heap.bytes_out()), (rest.objects_out, 0), "out to the slabs");
    assert_ne!(w.heap.take(0, CLASS, 3).head(), first, "who wants less takes none of it");
    let passed = w.heap.take(0, CLASS, batch);
    assert_eq!((passed.head(), passed.len()), (first, batch));
    assert_eq!(owner(&w, first), 1);
}

#[test]
fn what_lies_between_threads_goes_back_at_a_tick() {
    let w = world(16, 0);
    w.heap.use_shards(2);
    let batch = size_class::batch(CLASS);
    let chain = w.heap.take(1, CLASS, batch);
    // SAFETY: the objects are the heap's, and given up.
    unsafe { w.heap.pass_on_or_give(0, CLASS, chain) };
    assert_eq!(w.heap.class_stats(CLASS).objects_out, u64::from(batch));
    let _ = w.heap.tick();
    assert_eq!(w.heap.class_stats(CLASS).objects_out, 0);
}

#[test]
fn a_cache_that_overflows_hands_a_batch_to_one_that_runs_empty() {
    let w = world(16, 0);
    w.heap.use_shards(2);
    let (giver, taker) = (w.at_home(0), w.at_home(1));
    let batch = size_class::batch(CLASS) as usize;
    // The taker asks for whole batches by now.
    let own = taker.take_all(CLASS, 4 * batch);
    let given = giver.take_all(CLASS, 6 * batch);
    giver.give_all(given.iter().copied());
    let taken = taker.take_all(CLASS, 2 * batch);
    assert!(taken.iter().any(|object| given.contains(object)), "none came from the other thread");
    taker.give_all(own.into_iter().chain(taken));
    [&giver, &taker].into_iter().for_each(end);
    w.empty();
    assert_eq!((w.heap.bytes_out(), w.heap.in_use()), (0, Pages(0)));
}

#[test]
fn before_the_heap_grows_what_is_free_in_another_shard_serves() {
    let w = world(4, 0);
    w.heap.use_shards(2);
    let other = w.at_home(1);
    let each = usize::from(size_class::geometry(CLASS).capacity);
    // Nearly all of a hugepage, in the second home's slabs; one object in each is free.
    let all = other.take_all(CLASS, 200 * each);
    all.iter().step_by(each).for_each(|object| other.give(*object).unwrap());
    end(&other);
    let slabs = w.heap.slabs_in_shards();
    let object = w.take(CLASS);
    assert_eq!((owner(&w, object), w.heap.slabs_in_shards()), (1, slabs), "no new slab");
    w.give(object).unwrap();
    end(&w);
    assert_eq!(w.heap.slabs(0, CLASS).stats().objects_out, 0);
}
