//! Slabs that hold objects of two sizes.

#[path = "common/pair.rs"]
mod pair;

use craton_sim::FaultRule;
use craton_slab::{Left, Place};
use pair::Caches;
use proptest::prelude::*;

const SMALL: usize = 0;
const LARGE: usize = 1;

/// Two caches, and a slab of the first on which only the objects at these places live.
fn with_live(sizes: &[usize], live: &[usize]) -> Caches {
    let mut world = Caches::new(sizes, 64);
    let capacity = world.caches[SMALL].borrow().geometry().capacity.into();
    assert_eq!(world.take(SMALL, capacity as u32), capacity);
    let first = world.out[0].at;
    for i in (0..capacity).rev() {
        if !live.iter().any(|place| world.out[i].at == first + place * sizes[SMALL]) {
            world.give(i, false);
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn objects_of_all_sizes_keep_their_bytes_and_all_slabs_come_back(
        sizes in prop::sample::select(vec![
            vec![112, 144], vec![16, 448], vec![448, 16], vec![64, 96, 208, 240], vec![1152, 1536, 2048], vec![4096, 5120]
        ]),
        steps in prop::collection::vec((0usize..8, 0u32..100, any::<u32>()), 1..60),
    ) {
        let mut world = Caches::new(&sizes, 64);
        for (class, many, random) in steps {
            if class < sizes.len() && world.out.len() < 2000 {
                world.take(class, many);
            } else {
                let mut random = random;
                for _ in 0..world.out.len() as u32 * many / 100 {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    world.give(random as usize / 2 % world.out.len(), random >> 30 == 0);
                }
            }
        }
        world.drain();
    }
}

#[test]
fn s6_places_under_live_old_objects_are_not_used_until_these_are_back() {
    // 73 places of 112 bytes; 56 of 144. The old object 9 is at 1008..1120, over the new places 7 (1008..1152) alone;
    // the old object 20 at 2240..2352, over 15 (2160..2304) and 16 (2304..2448).
    let mut world = with_live(&[112, 144], &[9, 20]);
    let slab = world.out.iter().map(|o| o.at).min().unwrap() - 1008;
    assert_eq!(world.take(LARGE, 100), 100);
    assert_eq!((world.pages().0, world.morphed(LARGE)), (2, (1, 0)), "53 objects lie on the first slab");
    let on_slab =
        |world: &Caches, place: usize| world.out.iter().any(|o| o.class == LARGE && o.at == slab + place * 144);
    let free: Vec<usize> = (0..56).filter(|place| !on_slab(&world, *place)).collect();
    assert_eq!(free, [7, 15, 16]);

    assert_eq!(world.look(slab + 1008), Some(Place::Old { class: 0, offset: 0 }));
    assert_eq!(world.look(slab + 1008 + 16), Some(Place::Old { class: 0, offset: 16 }));
    assert_eq!(world.look(slab + 144), Some(Place::New { class: 1, offset: 0, was_old: None }));
    assert_eq!(world.look(slab + 112), Some(Place::New { class: 1, offset: 112, was_old: Some(0) }));
    assert_eq!(world.look(slab + 113), Some(Place::New { class: 1, offset: 113, was_old: None }));
    assert_eq!(world.look(slab + 2400), Some(Place::Nothing { was_old: None }));
    assert_eq!(world.look(slab + 8176), Some(Place::Nothing { was_old: None }), "the tail");

    // The first one comes back as from the program, the last one out of a cache in front; then the slab is as any
    // other.
    let at = |world: &Caches, bytes| world.out.iter().position(|o| o.at == slab + bytes).unwrap();
    assert_eq!(world.give(at(&world, 1008), false), Some(Left::Morphed));
    assert!(world.give_old(slab + 1008).is_err(), "a second time");
    assert!(world.give_old(slab + 1120).is_err(), "an object that was free when the slab morphed");
    assert!(matches!(world.give(at(&world, 2240), true), Some(Left::Ordinary(_))));
    assert_eq!((world.look(slab), world.morphed(LARGE)), (None, (1, 1)));
    world.take(LARGE, 12);
    assert_eq!((world.pages().0, (0..56).all(|place| on_slab(&world, place))), (2, true));
    world.drain();
}

#[test]
fn a_slab_that_empties_before_its_last_old_object_is_back_goes_with_that_one() {
    let mut world = with_live(&[112, 144], &[5]);
    world.take(LARGE, 3);
    while world.out.len() > 1 {
        let new = world.out.iter().position(|o| o.class == LARGE).unwrap();
        assert_eq!(world.give(new, false), None);
    }
    assert_eq!((world.pages().0, world.morphs.borrow().slabs()), (1, 1));
    assert_eq!(world.give(0, false), Some(Left::Gone));
    assert_eq!((world.pages().0, world.morphs.borrow().slabs()), (0, 0));
}

#[test]
fn only_slabs_of_few_objects_of_the_same_length_morph() {
    let every_third: Vec<usize> = (0..73).step_by(3).collect();
    let most: Vec<usize> = (0..50).collect();
    for (sizes, live, morphs) in [
        ([112, 144], &every_third[..], 1),
        ([112, 144], &most[..], 0),
        // Nearly all of its 64 places are free, but the slabs of the other size are twice as long.
        ([112, 1152], &[0], 0),
        // Few objects, but on spans for few objects there is no place for many.
        ([112, 1024], &[0], 0),
        // Under a third of the objects, but one on each of the 17 places.
        ([112, 480], &every_third[..], 0),
    ] {
        let mut world = with_live(&sizes, live);
        world.take(LARGE, 1);
        assert_eq!(world.morphed(LARGE).0, morphs, "{sizes:?} with {} live", live.len());
        world.drain();
    }
}

#[test]
fn a_slab_that_is_still_being_cut_stays_with_its_cache() {
    let mut world = Caches::new(&[112, 144], 64);
    world.take(SMALL, 3);
    world.take(LARGE, 3);
    assert_eq!((world.morphed(LARGE).0, world.pages().0), (0, 2));
    world.drain();
}

#[test]
fn a_slab_of_two_sizes_does_not_take_a_third() {
    let mut world = with_live(&[112, 144, 208], &[5]);
    world.take(LARGE, 3);
    world.take(2, 3);
    assert_eq!((world.morphed(LARGE).0, world.morphed(2).0), (1, 0));
    world.drain();
}

#[test]
fn without_room_in_the_table_a_new_span_is_taken_and_without_memory_a_slab_morphs() {
    let mut world = Caches::new(&[112, 144], 2);
    world.take(SMALL, 3 * 73);
    let slab = |at: usize| at >> 13;
    let mut seen = Vec::new();
    for i in (0..world.out.len()).rev() {
        if seen.contains(&slab(world.out[i].at)) {
            world.give(i, false);
        } else {
            seen.push(slab(world.out[i].at));
        }
    }
    assert_eq!((world.out.len(), world.pages().0), (3, 3));
    world.faults.set(FaultRule::From(1));
    let taken = world.take(LARGE, 100);
    assert!((54..57).contains(&taken), "one slab, less what a live object may cover, gave {taken}");
    assert_eq!(world.take(LARGE, 1), 0);
    world.faults.set(FaultRule::Never);
    assert_eq!((world.take(LARGE, 1), world.pages().0, world.morphed(LARGE).0), (1, 4, 1));
    world.drain();
}
