use super::*;
use craton_base::{Floor, HugePages};
use craton_sim::{BumpSpans, Checked, ThpMode};

fn world() -> (SimFloor, Checked<BumpSpans>, Slabs) {
    let mut floor = SimFloor::new(HugePages(8), ThpMode::Never);
    floor.reserve(HugePages(8)).expect("nothing refuses");
    let spans = Checked::new(BumpSpans::new(HugePages(8).pages()));
    (floor.clone(), spans, Slabs::new(floor))
}

#[test]
fn a_slab_is_taken_when_the_last_is_full_and_given_back_when_empty() {
    let (_, mut spans, mut slabs) = world();
    let geometry = geometry(class_of(1000));
    let capacity = usize::from(geometry.capacity);
    let objects: Vec<PageId> = (0..=capacity).map(|_| slabs.alloc(1000, &mut spans).expect("room")).collect();
    assert!(objects[..capacity].iter().all(|first| *first == objects[0]));
    assert_ne!(objects[capacity], objects[0]);
    assert_eq!(spans.live(), Pages(2 * geometry.pages.0));
    slabs.free(objects[capacity], 1000, &mut spans);
    assert_eq!(spans.live(), geometry.pages);
    objects[..capacity].iter().for_each(|first| slabs.free(*first, 1000, &mut spans));
    assert_eq!(spans.live(), Pages(0));
}

#[test]
fn the_slab_that_became_partial_last_is_used_first() {
    let (_, mut spans, mut slabs) = world();
    let capacity = usize::from(geometry(class_of(1000)).capacity);
    let objects: Vec<PageId> = (0..4 * capacity).map(|_| slabs.alloc(1000, &mut spans).expect("room")).collect();
    for slab in [2, 0, 3] {
        slabs.free(objects[slab * capacity], 1000, &mut spans);
    }
    let firsts: Vec<PageId> = (0..3).map(|_| slabs.alloc(1000, &mut spans).expect("room")).collect();
    assert_eq!(firsts, [3, 0, 2].map(|slab| objects[slab * capacity]));
}

#[test]
fn pages_are_touched_as_objects_are_cut() {
    let (floor, mut spans, mut slabs) = world();
    slabs.alloc(16, &mut spans).expect("room");
    assert_eq!(floor.backed_bytes(), Pages(1).bytes());
    let geometry = geometry(class_of(16));
    assert!((1..geometry.capacity).all(|_| slabs.alloc(16, &mut spans).is_ok()));
    assert_eq!(floor.backed_bytes(), geometry.pages.bytes());
    slabs.alloc(300_000, &mut spans).expect("room");
    assert_eq!(floor.backed_bytes().0, geometry.pages.bytes().0 + Pages(37).bytes().0);
}
