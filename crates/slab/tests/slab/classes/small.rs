//! Every short sequence of operations on slabs with few objects.

use super::World;
use craton_sim::FaultPlan;
use craton_slab::Geometry;

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u32),
    GiveFirst,
    GiveLast,
    GiveAll,
    GiveEverySecond,
}

const STEPS: [Step; 7] = [
    Step::Take(1),
    Step::Take(2),
    Step::Take(5),
    Step::GiveFirst,
    Step::GiveLast,
    Step::GiveAll,
    Step::GiveEverySecond,
];

fn apply(world: &mut World, step: Step) {
    let n = world.out.len();
    match step {
        Step::Take(want) => assert_eq!(world.alloc(want), want as usize),
        Step::GiveFirst => world.free(0..1),
        Step::GiveLast => world.free(n.saturating_sub(1)..n),
        Step::GiveAll => world.free(0..n),
        Step::GiveEverySecond => world.free((0..n).step_by(2)),
    }
}

fn every_sequence(geometry: Geometry, length: u32) {
    for code in 0..STEPS.len().pow(length) {
        // Caches that keep complete slabs, and others.
        let mut world = World::keeping(geometry, (code % 3) as u16, FaultPlan::default());
        let mut rest = code;
        for _ in 0..length {
            apply(&mut world, STEPS[rest % STEPS.len()]);
            rest /= STEPS.len();
        }
        world.drain();
    }
}

#[test]
fn slabs_of_four_objects_keep_s1_to_s5() {
    every_sequence(Geometry::parts(8, 4), 4);
}

#[test]
fn slabs_between_which_pages_are_left_keep_s1_to_s5() {
    every_sequence(Geometry::parts(9, 2), 4);
}

#[test]
fn slabs_of_one_object_keep_s1_to_s5() {
    every_sequence(Geometry::parts(5, 1), 4);
}

#[test]
fn complete_slabs_that_were_missed_are_kept_and_go_back_when_asked_or_idle() {
    let mut world = World::keeping(Geometry::parts(8, 4), 5, FaultPlan::default());
    let mut swing = |slabs: u32| {
        let before = world.cache.stats().slabs;
        world.alloc(4 * slabs);
        let asked = world.cache.stats().slabs - before;
        world.free(0..world.out.len());
        (asked, world.cache.complete())
    };
    assert_eq!(swing(3), (3, 0), "nobody has missed them yet");
    assert_eq!(swing(3), (3, 3));
    assert_eq!(swing(3), (0, 3));
    assert_eq!(swing(9), (6, 3));
    assert_eq!(swing(9), (6, 5), "no more than the most");
    world.free_idle();
    assert_eq!(world.cache.complete(), 5, "all were used since the last look");
    world.alloc(4 * 2);
    world.free(0..8);
    world.free_idle();
    assert_eq!(world.cache.complete(), 2);
    assert_eq!((world.free_complete(1), world.free_complete(5)), (1, 1));
}

#[test]
fn objects_come_in_the_order_of_their_addresses_from_a_fresh_slab() {
    let mut world = World::new(Geometry::of(64), FaultPlan::default());
    world.alloc(50);
    world.alloc(50);
    assert!(world.out.windows(2).all(|w| w[1] == w[0] + 64));
}

fn used(world: &World, slabs: &[usize]) -> Vec<usize> {
    let bytes = world.cache.geometry().pages.bytes().0;
    slabs.iter().map(|s| world.out.iter().filter(|o| (*s..*s + bytes).contains(o)).count()).collect()
}

#[test]
fn new_objects_come_from_the_fullest_slabs_and_the_emptiest_one_drains() {
    let mut world = World::new(Geometry::parts(8, 4), FaultPlan::default());
    world.alloc(12);
    let slabs: Vec<usize> = world.out.iter().copied().step_by(4).collect();
    world.free([0, 1, 2, 4, 8, 9].into_iter());
    assert_eq!(used(&world, &slabs), [1, 3, 2]);
    world.alloc(1);
    assert_eq!(used(&world, &slabs), [1, 4, 2]);
    world.alloc(2);
    assert_eq!(used(&world, &slabs), [1, 4, 4]);
    world.free(0..1);
    assert_eq!((used(&world, &slabs), world.cache.stats().slabs), (vec![0, 4, 4], 2));
    world.drain();
}
