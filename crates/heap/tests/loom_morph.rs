//! A slab morphs while threads free its live objects, by marks that may be old.
//!
//! Two of its 73 objects live. In the end the slab is free, and no live objects ever overlap.
#![cfg(loom)]

use craton_base::HugePages;
use craton_base::atomic::model::check;
use craton_base::loom::thread::{self, JoinHandle};
use craton_heap::model;
use craton_heap::size_class;
use craton_sim::{RealFloor, VirtualClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type World = model::World<RealFloor, VirtualClock>;

fn from() -> usize {
    size_class::class_of(112)
}

fn to() -> usize {
    size_class::class_of(144)
}

/// Slabs of twice the length.
fn long() -> usize {
    size_class::class_of(1488)
}

fn empty_world() -> World {
    let floor = RealFloor::new(HugePages(1));
    let base = floor.base();
    World::new(floor, base, RealFloor::new(HugePages(1)), VirtualClock::new(1), &[from(), to(), long(), longer()])
}

/// Two live objects, far apart on a slab in shard 0.
fn world() -> (Arc<World>, [usize; 2]) {
    let world = empty_world();
    let all = size_class::geometry(from()).capacity.into();
    let mut objects = world.take_batch(0, from(), all);
    let last = objects.pop().expect("a slab of many");
    let first = objects.remove(0);
    world.give_batch(from(), &objects);
    world.look_at(0, from());
    (Arc::new(world), [first, last])
}

fn beside<R: 'static>(world: &Arc<World>, f: impl Fn(&World) -> R + 'static) -> JoinHandle<R> {
    let world = Arc::clone(world);
    thread::spawn(move || f(&world))
}

/// By a thread that then ends.
fn give(world: &World, home: usize, object: usize) {
    let hand = world.hand(home);
    hand.give(world, object);
    hand.empty(world);
}

fn take(world: &World, home: usize) -> usize {
    let hand = world.hand(home);
    let object = hand.take(world, to());
    hand.empty(world);
    object
}

/// Threads of other homes free the slab's objects meanwhile.
fn morph_while_freed(taker: usize, homes: [usize; 2], morphed: &AtomicU32) {
    let (world, [first, last]) = world();
    let new = beside(&world, move |world| take(world, taker));
    let other = beside(&world, move |world| give(world, homes[0], first));
    give(&world, homes[1], last);
    let new = new.join().unwrap();
    other.join().unwrap();
    morphed.fetch_add(world.morphed(to()).0, Relaxed);
    give(&world, 0, new);
    world.check_empty();
}

fn check_homes(preemptions: usize, taker: usize, homes: [usize; 2]) {
    let morphed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&morphed);
    check(preemptions, move || morph_while_freed(taker, homes, &count));
    assert!(morphed.load(Relaxed) > 0, "in some orders the slab is taken over");
}

#[test]
fn objects_come_back_to_the_home_that_took_the_slab_over() {
    let morphed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&morphed);
    check(3, move || {
        let (world, [first, last]) = world();
        let new = beside(&world, |world| take(world, 1));
        give(&world, 1, last);
        let new = new.join().unwrap();
        count.fetch_add(world.morphed(to()).0, Relaxed);
        [first, new].iter().for_each(|object| give(&world, 1, *object));
        world.check_empty();
    });
    assert!(morphed.load(Relaxed) > 0, "in some orders the slab is taken over");
}

/// One more with `CRATON_FULL=1`.
#[test]
fn an_object_is_known_while_its_slab_changes_and_settles() {
    let preemptions = if std::env::var_os("CRATON_FULL").is_some() { 3 } else { 2 };
    check(preemptions, || {
        let (world, [first, last]) = world();
        let new = beside(&world, move |world| {
            let new = take(world, 1);
            give(world, 1, first);
            new
        });
        assert_eq!(world.size_of(last), size_class::size_of_class(from()));
        give(&world, 0, last);
        give(&world, 0, new.join().unwrap());
        world.check_empty();
    });
}

#[test]
fn objects_come_back_to_the_home_that_gave_the_slab_up() {
    check_homes(2, 1, [0, 0]);
}

#[test]
fn objects_come_back_to_both_homes() {
    check_homes(1, 1, [0, 1]);
}

#[test]
fn a_slab_changes_its_class_in_its_shard() {
    check_homes(1, 0, [0, 1]);
}

#[test]
fn old_and_new_objects_of_a_slab_come_back_at_once() {
    check(3, || {
        let (world, [first, last]) = world();
        let new = take(&world, 1);
        assert!(world.is_morphed(new) && world.is_morphed(first));
        give(&world, 0, last);
        let other = beside(&world, move |world| give(world, 0, first));
        give(&world, 1, new);
        other.join().unwrap();
        world.check_empty();
    });
}

#[test]
fn the_last_old_object_makes_the_slab_an_ordinary_one_while_others_free_new_ones() {
    check(3, || {
        let (world, [first, last]) = world();
        let news = [take(&world, 1), take(&world, 1)];
        give(&world, 1, last);
        let other = beside(&world, move |world| give(world, 0, news[0]));
        give(&world, 1, first);
        assert!(!world.is_morphed(first));
        other.join().unwrap();
        assert_eq!(world.morphed(to()), (1, 1));
        give(&world, 0, news[1]);
        world.check_empty();
    });
}

/// No old objects live; one new object is on the grid, two are off it.
fn unsettled() -> (Arc<World>, usize, [usize; 2]) {
    let world = empty_world();
    let mut olds = world.take_batch(0, from(), size_class::geometry(from()).capacity.into());
    olds.sort_unstable();
    let slab = olds[0];
    let live = [olds.remove(20), olds.remove(0)];
    world.give_batch(from(), &olds);
    world.look_at(0, from());
    let mut news = world.take_batch(1, to(), 54);
    let mut pick = |on_grid: bool| {
        let at = news.iter().position(|o| (o - slab).is_multiple_of(144) == on_grid).expect("there are such");
        news.swap_remove(at)
    };
    let (on, off) = (pick(true), [pick(false), pick(false)]);
    world.give_batch(to(), &news);
    live.into_iter().for_each(|object| give(&world, 0, object));
    assert!(world.is_morphed(on), "two are off the grid");
    (Arc::new(world), on, off)
}

#[test]
fn a_slab_settles_while_threads_free_objects_off_its_grid() {
    check(3, || {
        let (world, on, off) = unsettled();
        let other = beside(&world, move |world| give(world, 0, off[0]));
        give(&world, 1, off[1]);
        other.join().unwrap();
        assert!(!world.is_morphed(on));
        assert_eq!(world.morphed(to()), (1, 1));
        give(&world, 0, on);
        world.check_empty();
    });
}

#[test]
fn objects_on_the_grid_come_back_while_their_slab_settles() {
    check(3, || {
        let (world, on, off) = unsettled();
        give(&world, 1, off[1]);
        let other = beside(&world, move |world| give(world, 0, off[0]));
        give(&world, 0, on);
        other.join().unwrap();
        world.check_empty();
    });
}

#[test]
fn two_slabs_become_one_while_threads_free_their_objects() {
    let morphed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&morphed);
    check(2, move || {
        let world = empty_world();
        // Neighbours of two classes, in two shards.
        let mut first = world.take_batch(0, from(), size_class::geometry(from()).capacity.into());
        let mut second = world.take_batch(1, to(), size_class::geometry(to()).capacity.into());
        let live = [first.pop().expect("many"), second.pop().expect("many")];
        world.give_batch(from(), &first);
        world.give_batch(to(), &second);
        world.look_at(0, from());
        let world = Arc::new(world);
        let new = beside(&world, |world| {
            let hand = world.hand(1);
            let object = hand.take(world, long());
            hand.empty(world);
            object
        });
        give(&world, 0, live[0]);
        give(&world, 0, live[1]);
        let new = new.join().unwrap();
        count.fetch_add(world.morphed(long()).0, Relaxed);
        give(&world, 0, new);
        world.check_empty();
    });
    assert!(morphed.load(Relaxed) > 0, "in some orders the slabs are taken over");
}

/// Slabs of four pages.
fn longer() -> usize {
    size_class::class_of(6544)
}

#[test]
fn a_slab_becomes_several_while_threads_free_an_object_across_their_border() {
    let morphed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&morphed);
    check(2, move || {
        let world = empty_world();
        let mut olds = world.take_batch(0, longer(), size_class::geometry(longer()).capacity.into());
        olds.sort_unstable();
        // Of five, the third lies on pages two and three, the fourth on the last two.
        let live = [olds.remove(2), olds.remove(2)];
        world.give_batch(longer(), &olds);
        world.look_at(0, longer());
        let world = Arc::new(world);
        let new = beside(&world, |world| take(world, 1));
        give(&world, 0, live[0]);
        give(&world, 1, live[1]);
        let new = new.join().unwrap();
        count.fetch_add(world.morphed(to()).0, Relaxed);
        give(&world, 0, new);
        world.check_empty();
    });
    assert!(morphed.load(Relaxed) > 0, "in some orders the slab is taken over");
}
