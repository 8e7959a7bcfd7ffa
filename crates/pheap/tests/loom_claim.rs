//! Of two frees of one object at once exactly one succeeds. On media without write-back the first
//! thread frees without claims until a second one comes.

use crate::loom_world::{Hand, SIZE, World, run, run_with_many, slot};
use craton_pheap::{Error, Model};

type Freed = Result<(), Error>;

fn free<const F: bool>(world: &World<F>) -> Freed {
    world.heap.free_from(slot(0))
}

fn free_in_batch<const F: bool>(world: &World<F>) -> Freed {
    let mut batch = world.heap.batch();
    batch.free(slot(0));
    batch.commit()
}

fn verify<const F: bool>(world: &World<F>, results: [Freed; 2]) {
    let refused: Vec<_> = results.iter().filter_map(|result| result.err()).collect();
    assert!(matches!(refused[..], [Error::Null { .. } | Error::AlreadyFree { .. }]), "{results:?}");
    assert_eq!(world.heap.read(slot(0).0), 0);
    assert_eq!(world.heap.stats().small, 0);
}

fn free_twice<const F: bool>(kind: Model, other: Hand<F, Freed>) {
    run_with_many::<F, _, 2>(kind, |heap| _ = heap.alloc_to(slot(0), SIZE).unwrap(), [free, other], verify);
}

#[test]
fn of_two_frees_at_once_one_succeeds() {
    free_twice::<true>(Model::Log, free);
    free_twice::<false>(Model::Log, free);
    free_twice::<false>(Model::Gc, free);
}

#[test]
fn of_a_free_and_a_batch_at_once_one_succeeds() {
    free_twice::<true>(Model::Log, free_in_batch);
    free_twice::<false>(Model::Log, free_in_batch);
}

#[test]
fn of_the_last_free_without_a_claim_and_the_first_with_one_one_succeeds() {
    run::<false, _, 2>(Model::Log, |heap| _ = heap.alloc_to(slot(0), SIZE).unwrap(), [free, free], verify);
}
