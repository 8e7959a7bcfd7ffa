//! Objects go between threads, caches and slabs: each user sees the writes of the one before.

use crate::loom_world::{Hand, SIZE, World, run, run_weakened, slot};
use craton_pheap::Model;

/// One thread allocates an object; the other frees it if it is there.
fn free_of_another<const F: bool>() -> [Hand<F, bool>; 2] {
    [
        |world| {
            world.alloc(0);
            false
        },
        |world| {
            let freed = world.free(0);
            world.alloc(1);
            freed
        },
    ]
}

fn run_free_of_another<const F: bool>() {
    run(
        Model::Log,
        |_| {},
        free_of_another::<F>(),
        |world, [_, freed]| {
            assert_eq!(world.heap.stats().small, if freed { 1 } else { 2 });
        },
    );
}

#[test]
fn an_object_that_one_thread_allocates_serves_the_thread_that_frees_it() {
    run_free_of_another::<true>();
    run_free_of_another::<false>();
}

#[test]
#[should_panic = "Causality violation"]
fn without_its_orderings_an_object_has_two_users() {
    run_weakened(|_| {}, free_of_another::<false>());
}

/// The next thread may get the lane with the freed object.
fn next_thread<const F: bool>() {
    run::<F, _, 3>(
        Model::Log,
        |heap| _ = heap.alloc_to(slot(0), SIZE).unwrap(),
        [|_: &World<F>| {}, |world: &World<F>| assert!(world.free(0)), |world: &World<F>| world.alloc(1)],
        |world, _| assert_eq!(world.heap.stats().small, 1),
    );
}

#[test]
fn a_lane_goes_to_the_next_thread() {
    next_thread::<true>();
    next_thread::<false>();
}

/// An empty slab goes back to the extents, or serves.
fn retire<const F: bool>() {
    run::<F, _, 2>(
        Model::Log,
        |heap| {
            heap.alloc_to(slot(0), SIZE).unwrap();
            heap.free_from(slot(0)).unwrap();
        },
        [|world: &World<F>| world.heap.maintain(0), |world: &World<F>| world.alloc(1)],
        |world, _| assert_eq!(world.heap.stats().small, 1),
    );
}

#[test]
fn an_empty_slab_is_retired_or_serves() {
    retire::<true>();
    retire::<false>();
}

/// Half an object of the slab.
const GUEST: u64 = 8000;

/// A thread frees the last guest of a slab while another allocates one before it.
fn guests_at_once<const F: bool>() {
    run::<F, _, 2>(
        Model::Log,
        |heap| {
            (0..4).for_each(|number| _ = heap.alloc_to(slot(number), SIZE).unwrap());
            (2..4).for_each(|number| heap.free_from(slot(number)).unwrap());
            // Out of the lane's cache.
            heap.defrag([]).unwrap();
            (2..4).for_each(|number| _ = heap.alloc_to(slot(number), GUEST).unwrap());
            assert!(heap.read(slot(2).0) > heap.read(slot(3).0), "the last guest is in slot 2");
            assert_eq!(heap.slabs().iter().map(|slab| slab.guests).sum::<u32>(), 2);
            heap.free_from(slot(3)).unwrap();
        },
        [|world: &World<F>| assert!(world.free(2)), |world: &World<F>| world.alloc_of(3, GUEST)],
        |world, _| assert_eq!(world.heap.slabs().iter().map(|slab| slab.guests).sum::<u32>(), 1),
    );
}

#[test]
fn a_guest_is_freed_while_another_is_allocated() {
    guests_at_once::<true>();
    guests_at_once::<false>();
}
