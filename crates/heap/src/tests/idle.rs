use super::world::{World, world};
use crate::size_class;
use std::vec::Vec;

fn take(w: &World, size: usize, n: usize) -> Vec<*mut u8> {
    let class = size_class::class_of(size);
    (0..n).map(|_| w.take(class)).inspect(|object| assert!(!object.is_null())).collect()
}

fn give(w: &World, objects: Vec<*mut u8>) {
    objects.into_iter().for_each(|object| w.give(object).expect("it is out"));
}

/// A burst lets the list hold many.
fn after_a_burst(w: &World) -> usize {
    for _ in 0..20 {
        give(w, take(w, 64, 2000));
    }
    // SAFETY: the cache is ours.
    unsafe { (*w.cache).bytes() }
}

#[test]
fn what_nobody_asked_for_since_the_heap_was_smaller_goes_back() {
    let w = world(8, 2 << 20);
    let held = after_a_burst(&w);
    assert!(held > 32 << 10, "the cache holds {held} bytes");
    let others = take(&w, 2048, 1000);
    // SAFETY: the cache is ours.
    let left = unsafe { (*w.cache).bytes() };
    assert!(left < held / 2, "of {held} bytes the cache still holds {left}");
    give(&w, others);
    w.empty();
}

#[test]
fn a_heap_that_does_not_grow_leaves_caches_alone() {
    let w = world(8, 2 << 20);
    // As large as the heap will be.
    give(&w, take(&w, 2048, 1000));
    let held = after_a_burst(&w);
    give(&w, take(&w, 1024, 100));
    // SAFETY: the cache is ours.
    assert!(unsafe { (*w.cache).bytes() } >= held, "the cache held {held} bytes");
    w.empty();
}

#[test]
fn idle_objects_are_lent_to_sizes_from_half_on_while_the_heap_is_small() {
    let w = world(64, 1 << 20);
    let [small, class, lender] = [90, 112, 200].map(size_class::class_of);
    let lend = |class| w.heap.borrow(w.cache(), class);
    assert_eq!(lend(class), None, "there is none yet");
    let object = w.take(lender);
    w.give(object).unwrap();
    assert_eq!(lend(small), None, "too large");
    assert_eq!(lend(class), Some((object, lender)));
    w.give(object).unwrap();
    let own = w.take(class);
    w.give(own).unwrap();
    assert_eq!(lend(class), None, "it has its own");
    assert!(!w.large(20 << 20).is_null() && !w.large(20 << 20).is_null());
    assert_eq!(lend(size_class::class_of(144)), None, "the heap is not small any more");
}
