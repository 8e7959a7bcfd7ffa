use super::world::{World, hardened_world, holds, stamp, world};
use craton_base::PAGE_SIZE;
use std::collections::BTreeSet;
use std::vec::Vec;

const SIZE: usize = 300 << 10;

/// Also the usable bytes, and the page behind them.
fn guarded(w: &World, bytes: usize) -> (*mut u8, usize) {
    let object = w.large(bytes);
    assert!(!object.is_null());
    let usable = w.usable(object).unwrap();
    assert!(usable >= bytes && usable < bytes + bytes / 8 + 3 * PAGE_SIZE, "{bytes}: {usable}");
    stamp(object, usable);
    (object, object as usize + usable)
}

#[test]
fn the_page_behind_a_large_object_is_closed_and_stays_so_while_its_span_is_kept() {
    let w: World = hardened_world(16);
    let (object, guard) = guarded(&w, SIZE);
    assert_eq!(w.system.shut_ranges(), BTreeSet::from([guard]));
    w.give(object).unwrap();
    assert_eq!(w.system.shut_ranges(), BTreeSet::from([guard]), "its span is kept");
    assert_eq!(w.large(SIZE), object);
    assert_eq!(w.system.shut_ranges(), BTreeSet::from([guard]));
    w.give(object).unwrap();
    w.empty();
    assert!(w.system.shut_ranges().is_empty(), "the page heap has the span");
}

#[test]
fn a_resized_object_has_its_guard_page_at_its_new_end() {
    let w: World = hardened_world(16);
    let (object, _) = guarded(&w, SIZE);
    for bytes in [2 * SIZE, SIZE, 5 * SIZE] {
        let found = w.heap.find(object);
        assert_eq!(w.heap.resize(object, found, bytes), Some(object), "{bytes}");
        let usable = w.usable(object).unwrap();
        assert_eq!(w.system.shut_ranges(), BTreeSet::from([object as usize + usable]), "{bytes}");
        assert!(usable >= bytes && holds(object, SIZE.min(bytes)));
    }
    // An object in the way.
    let (behind, guard) = guarded(&w, SIZE);
    let before = w.system.shut_ranges();
    if behind > object {
        let found = w.heap.find(object);
        assert_eq!(w.heap.resize(object, found, 15 << 20), None);
        assert!(w.system.shut_ranges() == before && before.contains(&guard), "a refusal changes nothing");
    }
}

#[test]
fn slabs_and_other_lengths_get_spans_without_guard_pages() {
    let w: World = hardened_world(16);
    for round in 1..30 {
        w.clock.advance(1 << 22);
        let objects: Vec<_> = (1..6).map(|i| guarded(&w, SIZE / 2 + i * round * 9000).0).collect();
        w.give_all(objects);
        let small: Vec<_> = (60..75).map(|class| w.take(class)).collect();
        let open = |object: *mut u8| {
            let usable = w.usable(object).unwrap();
            w.system.shut_ranges().range(object as usize..object as usize + usable).next().is_none()
        };
        assert!(small.iter().all(|object| open(*object)), "{round}");
        w.give_all(small);
    }
    w.empty();
    assert!(w.system.shut_ranges().is_empty());
}

#[test]
fn new_guard_pages_are_few_in_each_period() {
    let w: World = hardened_world(64);
    let many: Vec<_> = (0..20).map(|_| w.large(SIZE)).collect();
    assert_eq!(w.system.shut_ranges().len(), 16);
    let (first, last) = (w.usable(many[0]).unwrap(), w.usable(many[19]).unwrap());
    assert_eq!(last, first + PAGE_SIZE, "without a guard page the object has it");
    w.clock.advance(1 << 22);
    w.large(SIZE);
    assert_eq!(w.system.shut_ranges().len(), 17);
    w.give_all(many);
    w.empty();
    assert_eq!(w.system.shut_ranges().len(), 1);
}

#[test]
fn heaps_that_are_not_hardened_have_none() {
    let w = world(16, 1 << 20);
    let object = w.large(SIZE);
    assert!(w.system.shut_ranges().is_empty());
    w.give(object).unwrap();
}
