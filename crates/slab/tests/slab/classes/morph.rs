use super::pair::Caches;
use craton_sim::FaultRule;
use craton_slab::{Left, Place};
use proptest::prelude::*;

const SMALL: usize = 0;
const LARGE: usize = 1;

/// Only these objects of the first slab live.
fn with_live(sizes: &[usize], live: &[usize]) -> Caches {
    let mut world = Caches::new(sizes, 64);
    let capacity = world.caches[SMALL].borrow().geometry().capacity.into();
    assert_eq!(world.alloc(SMALL, capacity as u32), capacity);
    let first = world.out[0].at;
    for i in (0..capacity).rev() {
        if !live.iter().any(|place| world.out[i].at == first + place * sizes[SMALL]) {
            world.free(i, false);
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn objects_of_all_sizes_keep_their_bytes_and_all_slabs_come_back(
        sizes in prop::sample::select(vec![
            vec![112, 144], vec![16, 448], vec![448, 16], vec![64, 96, 208, 240], vec![1152, 1536, 2048], vec![4096, 5120],
            vec![112, 144, 1488, 208], vec![32, 1088, 240], vec![16, 6544, 304, 112], vec![2512, 32, 13_104],
            vec![9360, 144, 3264, 512]
        ]),
        steps in prop::collection::vec((0usize..8, 0u32..100, any::<u32>()), 1..60),
    ) {
        let mut world = Caches::new(&sizes, 64);
        for (class, many, random) in steps {
            if class < sizes.len() && world.out.len() < 2000 {
                world.alloc(class, many);
            } else {
                let mut random = random;
                for _ in 0..world.out.len() as u32 * many / 100 {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    world.free(random as usize / 2 % world.out.len(), random >> 30 == 0);
                }
            }
        }
        world.drain();
    }
}

#[test]
fn s6_new_places_fill_the_gaps_between_live_old_objects_until_these_are_back() {
    // 73 places of 112 bytes, 56 of 144. The live ones are at 1008 and 2240. In front and between
    // seven new objects fit, behind 40.
    let mut world = with_live(&[112, 144], &[9, 20]);
    let slab = world.out.iter().map(|o| o.at).min().unwrap() - 1008;
    assert_eq!(world.alloc(LARGE, 100), 100);
    assert_eq!((world.pages().0, world.morphed(LARGE)), (2, (1, 0)));
    let on_grid = |range: std::ops::Range<usize>| range.map(|place| place * 144);
    let mut expected: Vec<usize> = on_grid(0..7).chain(on_grid(8..15)).collect();
    expected.extend((0..40).map(|i| 2352 + i * 144));
    let news = |world: &Caches| {
        let on_slab = world.out.iter().filter(|o| o.class == LARGE && (slab..slab + 8192).contains(&o.at));
        let mut at: Vec<usize> = on_slab.map(|o| o.at - slab).collect();
        at.sort_unstable();
        at
    };
    assert_eq!(news(&world), expected);

    assert_eq!(world.place_of(slab + 1008), Some(Place::Old { class: 0, offset: 0 }));
    assert_eq!(world.place_of(slab + 1008 + 16), Some(Place::Old { class: 0, offset: 16 }));
    assert_eq!(world.place_of(slab + 144), Some(Place::New { class: 1, offset: 0, was_old: None }));
    assert_eq!(world.place_of(slab + 112), Some(Place::New { class: 1, offset: 112, was_old: Some(0) }));
    assert_eq!(world.place_of(slab + 113), Some(Place::New { class: 1, offset: 113, was_old: None }));
    assert_eq!(world.place_of(slab + 2400), Some(Place::New { class: 1, offset: 48, was_old: None }));
    assert_eq!(world.place_of(slab + 1120), Some(Place::Nothing { was_old: Some(0) }));
    assert_eq!(world.place_of(slab + 8176), Some(Place::Nothing { was_old: None }), "the tail");

    // The last comes out of a cache in front.
    let at = |world: &Caches, bytes| world.out.iter().position(|o| o.at == slab + bytes).unwrap();
    assert_eq!(world.free(at(&world, 1008), false), Some(Left::Morphed));
    assert!(world.free_mixed(slab + 1008).is_err(), "a second time");
    assert!(world.free_mixed(slab + 1120).is_err(), "an object that was free when the slab morphed");
    assert!(world.free_mixed(slab).is_err(), "a new object, while old ones are out");
    assert_eq!(world.free(at(&world, 2240), true), Some(Left::Morphed), "there are places off the grid");
    assert_eq!((world.alloc(LARGE, 12), world.pages().0), (12, 2));
    assert!(news(&world).contains(&1008) && news(&world).contains(&2160));

    // Places off the grid end when they come back.
    assert_eq!(world.free(at(&world, 144), false), None);
    for i in 0..39 {
        assert_eq!(world.free(at(&world, 2352 + i * 144), false), Some(Left::Morphed), "{i}");
        assert!(world.free_mixed(slab + 2352 + i * 144).is_err(), "a second time");
    }
    assert!(matches!(world.free(at(&world, 2352 + 39 * 144), false), Some(Left::Ordinary(_))));
    assert_eq!((world.place_of(slab), world.morphed(LARGE)), (None, (1, 1)));
    assert_eq!(world.alloc(LARGE, 41), 41);
    assert_eq!((world.pages().0, news(&world)), (2, on_grid(0..56).collect::<Vec<_>>()));
    world.drain();
}

#[test]
fn s6_two_neighbours_become_one_slab_of_twice_the_length() {
    // 73 objects of 112 bytes, 56 of 144, two live of each; 11 of 1488 fill two pages.
    let mut world = Caches::new(&[112, 144, 1488], 64);
    assert_eq!((world.alloc(0, 73), world.alloc(1, 56), world.pages().0), (73, 56, 2));
    let slab = world.out.iter().map(|o| o.at).min().unwrap();
    let kept = [0, 40 * 112, 8192 + 30 * 144, 8192 + 50 * 144].map(|bytes| slab + bytes);
    while let Some(i) = world.out.iter().position(|o| !kept.contains(&o.at)) {
        world.free(i, false);
    }
    // Two fit between the first and the second, five before the third, one behind.
    let taken = world.alloc(2, 8);
    assert_eq!((taken, world.pages().0, world.morphed(2)), (8, 2, (1, 0)));
    let across = world.out.iter().find(|o| o.at < slab + 8192 && o.at + 1488 > slab + 8192);
    assert_eq!(across.map(|o| o.at - slab), Some(7568), "over the border of the pages");
    assert_eq!(world.place_of(kept[2] + 16), Some(Place::Old { class: 1, offset: 16 }));
    assert_eq!(world.place_of(kept[1]), Some(Place::Old { class: 0, offset: 0 }));
    for (i, at) in kept.into_iter().enumerate() {
        let at = world.out.iter().position(|o| o.at == at).unwrap();
        assert_eq!(world.free(at, i % 2 == 0), Some(Left::Morphed));
    }
    while let Some(i) = world.out.iter().position(|o| !(o.at - slab).is_multiple_of(1488)) {
        world.free(i, false);
    }
    assert_eq!((world.pages().0, world.place_of(slab)), (2, None), "it has settled");
    world.drain();
}

#[test]
fn s6_a_long_slab_becomes_several_and_an_object_across_a_border_opens_both_sides() {
    // The live one lies from 13088 to 19632, on the third page.
    let mut world = with_live(&[6544, 144], &[2]);
    let slab = world.out[0].at - 13088;
    // 56 fit on a page without it, 34 on each side of it.
    assert_eq!(world.alloc(LARGE, 200), 200);
    assert_eq!((world.pages().0, world.morphed(LARGE)), (5, (2, 0)));
    let on = |world: &Caches, page: usize| {
        let range = slab + page * 8192..slab + (page + 1) * 8192;
        world.out.iter().filter(|o| o.class == LARGE && range.contains(&o.at)).count()
    };
    assert_eq!([0, 1, 2, 3].map(|page| on(&world, page)), [56, 34, 34, 56]);
    assert_eq!(world.place_of(slab + 13088), Some(Place::Old { class: 0, offset: 0 }));
    assert_eq!(world.place_of(slab + 16384 + 16), Some(Place::Old { class: 0, offset: 16384 + 16 - 13088 }));
    assert_eq!(world.place_of(slab), None, "a slab without live objects is an ordinary one");
    let old = world.out.iter().position(|o| o.class == SMALL).unwrap();
    assert!(matches!(world.free(old, true), Some(Left::Ordinary(_))), "on its first page all are on the grid");
    assert!(world.place_of(slab + 16384).is_some());
    assert_eq!((world.alloc(LARGE, 22 + 21), world.pages().0), (43, 5));
    world.drain();
}

#[test]
fn s6_the_last_old_object_may_end_the_time_of_two_slabs() {
    let mut world = with_live(&[6544, 144], &[2]);
    world.alloc(LARGE, 200);
    while let Some(new) = world.out.iter().position(|o| o.class == LARGE) {
        world.free(new, false);
    }
    assert_eq!(world.morphs.borrow().slabs(), 2);
    assert_eq!(world.free(0, true), Some(Left::Gone));
    assert_eq!(world.morphs.borrow().slabs(), 0);
    world.drain();
}

#[test]
fn neighbours_stay_two_if_one_is_nearly_full_or_the_only_one() {
    for (news, live, morphs) in [(56, 2, 1), (56, 54, 0), (0, 0, 0)] {
        let mut world = Caches::new(&[112, 144, 1488], 64);
        world.alloc(0, 73);
        world.alloc(1, news);
        for (class, keep) in [(0, 2), (1, live)] {
            while world.out.iter().filter(|o| o.class == class).count() > keep {
                world.free(world.out.iter().position(|o| o.class == class).unwrap(), false);
            }
        }
        world.alloc(2, 1);
        assert_eq!(world.morphed(2).0, morphs, "{live} of {news}");
        world.drain();
    }
}

#[test]
fn a_slab_that_empties_before_its_last_old_object_is_back_goes_with_that_one() {
    let mut world = with_live(&[112, 144], &[5]);
    world.alloc(LARGE, 3);
    while world.out.len() > 1 {
        let new = world.out.iter().position(|o| o.class == LARGE).unwrap();
        assert_eq!(world.free(new, false), None);
    }
    assert_eq!((world.pages().0, world.morphs.borrow().slabs()), (1, 1));
    assert_eq!(world.free(0, false), Some(Left::Gone));
    assert_eq!((world.pages().0, world.morphs.borrow().slabs()), (0, 0));
}

#[test]
fn only_slabs_with_gaps_for_the_new_size_morph() {
    let every_third: Vec<usize> = (0..73).step_by(3).collect();
    let most: Vec<usize> = (0..66).collect();
    for (sizes, live, morphs) in [
        ([112, 144], &every_third[..], 1),
        // Seven of 73 are free side by side: too few.
        ([112, 144], &most[..], 0),
        ([112, 144], &most[..65], 1),
        // The other size's slabs are twice as long.
        ([112, 1488], &[0], 0),
        // Few large objects among many small ones.
        ([112, 1024], &[0], 1),
        // Never five free ones side by side.
        ([112, 480], &every_third[..], 0),
        ([16, 144], &[0], 1),
        // Each slab becomes four.
        ([2512, 144], &[0, 5, 9], 4),
        ([2512, 144], &[0], 1),
    ] {
        let mut world = with_live(&sizes, live);
        world.alloc(LARGE, 1);
        assert_eq!(world.morphed(LARGE).0, morphs, "{sizes:?} with {} live", live.len());
        world.drain();
    }
}

#[test]
fn a_slab_that_is_still_being_cut_stays_with_its_cache() {
    let mut world = Caches::new(&[112, 144], 64);
    world.alloc(SMALL, 3);
    world.alloc(LARGE, 3);
    assert_eq!((world.morphed(LARGE).0, world.pages().0), (0, 2));
    world.drain();
}

#[test]
fn a_slab_of_two_sizes_does_not_get_a_third() {
    let mut world = with_live(&[112, 144, 208], &[5]);
    world.alloc(LARGE, 3);
    world.alloc(2, 3);
    assert_eq!((world.morphed(LARGE).0, world.morphed(2).0), (1, 0));
    world.drain();
}

#[test]
fn without_room_in_the_table_a_new_span_is_allocated_and_without_memory_a_slab_morphs() {
    let mut world = Caches::new(&[112, 144], 2);
    world.alloc(SMALL, 3 * 73);
    let slab = |at: usize| at >> 13;
    let mut seen = Vec::new();
    for i in (0..world.out.len()).rev() {
        if seen.contains(&slab(world.out[i].at)) {
            world.free(i, false);
        } else {
            seen.push(slab(world.out[i].at));
        }
    }
    assert_eq!((world.out.len(), world.pages().0), (3, 3));
    world.faults.set(FaultRule::From(1));
    let taken = world.alloc(LARGE, 100);
    assert!((54..57).contains(&taken), "one slab, less what a live object may cover, gave {taken}");
    assert_eq!(world.alloc(LARGE, 1), 0);
    world.faults.set(FaultRule::Never);
    assert_eq!((world.alloc(LARGE, 1), world.pages().0, world.morphed(LARGE).0), (1, 4, 1));
    world.drain();
}
