//! Remote frees: each object returns to the shard of its slab.
#![cfg(loom)]

use craton_base::HugePages;
use craton_base::atomic::model::check;
use craton_base::loom::thread;
use craton_heap::model;
use craton_heap::size_class;
use craton_sim::{RealFloor, VirtualClock};
use std::sync::Arc;

type World = model::World<RealFloor, VirtualClock>;

fn world() -> Arc<World> {
    let floor = RealFloor::new(HugePages(1));
    let base = floor.base();
    Arc::new(World::new(floor, base, RealFloor::new(HugePages(1)), VirtualClock::new(1), &[class()]))
}

/// Two objects on a slab.
fn class() -> usize {
    let two = |class: &usize| size_class::geometry(*class).capacity == 2;
    (1..=size_class::CLASSES).find(two).expect("there is one")
}

#[test]
fn the_last_two_objects_of_a_slab_come_back_from_two_shards() {
    check(3, || {
        let (world, class) = (world(), class());
        let objects = world.take_batch(0, class, 2);
        let (mine, theirs) = (objects[0], objects[1]);
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.give_batch(class, &[theirs]))
        };
        world.give_batch(class, &[mine]);
        other.join().unwrap();
        world.check_empty();
    });
}

#[test]
fn objects_of_both_shards_in_one_list_find_their_slabs_while_others_take() {
    check(2, || {
        let (world, class) = (world(), class());
        let mut objects = world.take_batch(0, class, 1);
        objects.extend(world.take_batch(0, class, 2));
        let kept = objects.pop().expect("two slabs and more");
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.give_batch(class, &objects))
        };
        let taker = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let hand = world.hand(1);
                let object = hand.take(&world, class);
                hand.give(&world, object);
                hand.empty(&world);
            })
        };
        world.give_batch(class, &[kept]);
        other.join().unwrap();
        taker.join().unwrap();
        world.check_empty();
    });
}

#[test]
fn threads_of_two_homes_give_each_other_objects() {
    check(3, || {
        let (world, class) = (world(), class());
        let first = world.take_batch(0, class, 1)[0];
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let hand = world.hand(1);
                let second = hand.take(&world, class);
                hand.give(&world, first);
                hand.empty(&world);
                second
            })
        };
        let hand = world.hand(0);
        let third = hand.take(&world, class);
        hand.give(&world, third);
        hand.empty(&world);
        hand.give(&world, other.join().unwrap());
        hand.empty(&world);
        world.check_empty();
    });
}
