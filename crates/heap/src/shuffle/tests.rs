//! Lists come back whole, in an order that the seed alone decides.

use super::*;
use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

fn random(seed: u64) -> Random {
    Random::new(&Key::new([seed, 2]), 0)
}

/// `n` linked objects.
fn linked(n: usize) -> Vec<*mut u8> {
    let objects: Vec<*mut u8> = (0..n).map(|_| Box::leak(Box::new([0u64; 2])).as_mut_ptr().cast()).collect();
    for (i, at) in objects.iter().enumerate() {
        // SAFETY: 16 bytes of the test's.
        unsafe { at.cast::<*mut u8>().write(objects.get(i + 1).map_or(end(), |next| *next)) };
    }
    objects
}

/// The places, in the old list, of the objects of the new one.
fn dealt(objects: &[*mut u8], random: &mut Random) -> Vec<usize> {
    // SAFETY: they are the test's objects, all linked.
    let mut chain = unsafe { deal(random, objects[0], objects.len() as u32, |at| at != end()) }.unwrap();
    assert_eq!(chain.last().is_null(), objects.is_empty());
    let order: Vec<*mut u8> = core::iter::from_fn(|| chain.pop()).collect();
    order.iter().map(|at| objects.iter().position(|object| object == at).unwrap()).collect()
}

#[test]
fn no_object_is_lost_or_doubled() {
    let mut random = random(1);
    for n in [1, 2, 3, 31, 32, 33, 64, 200] {
        let order = dealt(&linked(n), &mut random);
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..n).collect(), "{n}");
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
    let (mut firsts, mut after_first) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..400 {
        let order = dealt(&linked(8), &mut random);
        firsts.insert(order[0]);
        let at = order.iter().position(|i| *i == 0).unwrap();
        after_first.insert(order.get(at + 1).copied());
    }
    assert!(firsts.len() == 8 && after_first.len() == 8, "{firsts:?} {after_first:?}");
}

#[test]
fn a_list_that_is_short_or_broken_is_told() {
    let objects = linked(5);
    // SAFETY: as in `dealt`.
    let short = unsafe { deal(&mut random(1), objects[0], 7, |at| at != end()) };
    assert_eq!(short.err(), Some(Wrong::Short(2)));
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
