//! An operation beside the end of an epoch loses nothing in a crash.

use crate::loom_world::{SIZE, World, run, slot};
use craton_pheap::Model;

#[test]
fn an_operation_beside_the_end_of_an_epoch_is_durable() {
    run::<true, _, 2>(
        Model::Log,
        |heap| _ = heap.alloc_to(slot(0), SIZE).unwrap(),
        [
            |world: &World<true>| world.heap.settle(),
            |world: &World<true>| {
                assert!(world.free(0));
                world.alloc(1);
            },
        ],
        |world, _| assert_eq!(world.heap.stats().small, 1),
    );
}
