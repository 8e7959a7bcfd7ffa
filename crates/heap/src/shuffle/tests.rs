//! The seed alone decides the order.

use super::*;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

fn random(seed: u64) -> Random {
    Random::new(&Key::new([seed, 2]), 0)
}

fn linked(n: usize) -> Vec<*mut u8> {
    let objects: Vec<*mut u8> = (0..n).map(|_| Box::leak(Box::new([0u64; 2])).as_mut_ptr().cast()).collect();
    for (i, at) in objects.iter().enumerate() {
        // SAFETY: 16 bytes of the test's.
        unsafe { at.cast::<*mut u8>().write(objects.get(i + 1).map_or(end(), |next| *next)) };
    }
    objects
}

/// Where the new list's objects were.
fn dealt(objects: &[*mut u8], random: &mut Random) -> Vec<usize> {
    order_of(objects, |n| {
        // SAFETY: the test's objects, all linked.
        unsafe { deal(random, objects[0], n, |at| at != end()) }
    })
}

fn shuffled(objects: &[*mut u8], random: &mut Random) -> Vec<usize> {
    order_of(objects, |n| {
        // SAFETY: the test's objects, all linked.
        unsafe { shuffle(random, objects[0], n, |at| at != end()) }
    })
}

fn order_of(objects: &[*mut u8], make: impl FnOnce(u32) -> Result<Chain, Wrong>) -> Vec<usize> {
    let mut chain = make(objects.len() as u32).unwrap();
    assert_eq!(chain.last().is_null(), objects.is_empty());
    let order: Vec<*mut u8> = core::iter::from_fn(|| chain.pop()).collect();
    order.iter().map(|at| objects.iter().position(|object| object == at).unwrap()).collect()
}

#[test]
fn no_object_is_lost_or_doubled() {
    let mut random = random(1);
    for n in [1, 2, 3, 31, 32, 33, 64, 200] {
        for order in [dealt(&linked(n), &mut random), shuffled(&linked(n), &mut random)] {
            assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..n).collect(), "{n}");
        }
    }
}

#[test]
fn the_seed_decides_the_order() {
    let orders = |seed| dealt(&linked(32), &mut random(seed));
    assert!(orders(7) == orders(7) && orders(7) != orders(8));
    let mut random = random(7);
    assert_ne!(dealt(&linked(32), &mut random), dealt(&linked(32), &mut random), "nor twice the same");
}

#[test]
fn every_object_can_come_first_or_next_to_another() {
    let mut random = random(3);
    for (make, least) in [(dealt as fn(&[*mut u8], &mut Random) -> Vec<usize>, 7), (shuffled, 8)] {
        let (mut firsts, mut after_first) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..400 {
            let order = make(&linked(8), &mut random);
            firsts.insert(order[0]);
            let at = order.iter().position(|i| *i == 0).unwrap();
            after_first.insert(order.get(at + 1).copied());
        }
        assert!(firsts.len() == 8 && after_first.len() >= least, "{firsts:?} {after_first:?}");
    }
}

#[test]
fn a_list_of_16_gets_thousands_of_orders_and_each_object_comes_first_as_often() {
    let mut random = random(5);
    let (mut orders, mut firsts) = (BTreeSet::new(), [0; 16]);
    for _ in 0..4000 {
        let order = dealt(&linked(16), &mut random);
        firsts[order[0]] += 1;
        orders.insert(order);
    }
    assert!(orders.len() > 1000, "{}", orders.len());
    assert!(firsts.iter().all(|n| (150..350).contains(n)), "{firsts:?}");
}

#[test]
fn a_list_that_is_short_or_broken_is_told() {
    let objects = linked(5);
    // SAFETY: as in `dealt`.
    let short = unsafe { deal(&mut random(1), objects[0], 7, |at| at != end()) };
    assert_eq!(short.err(), Some(Wrong::Short(2)));
    let objects = linked(66);
    // SAFETY: as in `dealt`.
    let short = unsafe { shuffle(&mut random(1), objects[0], 200, |at| at != end()) };
    assert_eq!(short.err(), Some(Wrong::Short(134)));
    let objects = linked(5);
    // SAFETY: as in `dealt`.
    let bad = unsafe { deal(&mut random(1), objects[0], 5, |at| at != objects[3]) };
    assert_eq!(bad.err(), Some(Wrong::NotFree(objects[3])));
}

#[test]
fn a_shared_generator_goes_on_where_it_was() {
    let (shared, key) = (SharedRandom::NEW, Key::new([4, 5]));
    let mut first = shared.of(&key, 0);
    let draws = [first.draw(), first.draw()];
    shared.keep(first);
    let next = shared.of(&key, 0).draw();
    assert!(!draws.contains(&next) && draws[0] != draws[1]);
    let other = SharedRandom::NEW;
    assert_ne!(other.of(&key, 1).draw(), draws[0], "each shard has its own");
}
