use super::*;
use std::vec::Vec;

fn pages(class: usize) -> u32 {
    size_class::geometry(class).pages.0
}

#[test]
fn pages_are_those_of_the_slabs_that_the_classes_keep() {
    let complete = Complete::NONE;
    let (a, b) = (1, CLASSES);
    complete.update(a, 0, 5);
    complete.update(b, 0, 2);
    assert_eq!(complete.pages(), Pages(5 * pages(a) + 2 * pages(b)));
    complete.update(a, 5, 1);
    complete.update(b, 2, 0);
    assert_eq!(complete.pages(), Pages(pages(a)));
}

#[test]
fn the_classes_that_keep_some_are_known_in_order() {
    let complete = Complete::NONE;
    let some: Vec<usize> = [1, 2, 63, 64, 65, CLASSES].into_iter().filter(|class| *class <= CLASSES).collect();
    some.iter().for_each(|class| _ = complete.update(*class, 0, 3));
    let mut expected = some.clone();
    expected.dedup();
    assert_eq!(complete.classes().collect::<Vec<_>>(), expected);
    complete.update(2, 3, 2);
    assert!(complete.classes().any(|class| class == 2));
    complete.update(2, 2, 0);
    assert!(!complete.classes().any(|class| class == 2));
    let none = Complete::NONE;
    assert_eq!(none.classes().count(), 0);
}

#[test]
fn a_shard_keeps_half_a_mib_and_a_part_of_what_is_in_use() {
    let complete = Complete::NONE;
    let class = 1;
    assert_eq!(pages(class), 1);
    complete.update(class, 0, ALWAYS - 1);
    assert!(complete.has_room(Pages(0)));
    complete.update(class, ALWAYS - 1, ALWAYS);
    assert!(!complete.has_room(Pages(PART - 1)) && complete.has_room(Pages(PART)));
}

#[test]
fn one_change_in_so_many_is_reported_and_no_change_is_none() {
    let complete = Complete::NONE;
    for round in 1..=4 * REUSES {
        assert!(!complete.update(1, 1, 1));
        let (before, now) = if round % 2 == 1 { (0, 1) } else { (1, 0) };
        assert_eq!(complete.update(1, before, now), round % REUSES == 0, "change {round}");
    }
}
