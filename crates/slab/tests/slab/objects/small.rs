//! Every short sequence of operations on slabs with few objects.

use super::world::{World, with_world};
use craton_slab::object::{ObjectLayout, Taken};

const STEPS: usize = 7;

fn apply(world: &mut World, step: usize) {
    let n = world.out.len();
    match step {
        0 => assert!(world.alloc()),
        1 => assert_eq!(world.alloc_many(3), 3),
        2 if n > 0 => world.free(0, true),
        3 if n > 0 => world.free(n - 1, false),
        4 => (0..n).rev().for_each(|i| world.free(i, i % 2 == 0)),
        5 => world.reap(0),
        6 => world.slabs.turn(),
        _ => (),
    }
}

fn every_sequence(layout: ObjectLayout, length: u32) {
    for code in 0..STEPS.pow(length) {
        with_world(layout, 160, |world| {
            let mut rest = code;
            for _ in 0..length {
                apply(world, rest % STEPS);
                rest /= STEPS;
            }
        });
    }
}

#[test]
fn slabs_of_two_objects_apart_keep_o1_to_o4() {
    let layout = ObjectLayout::of(4096, 0, true).unwrap();
    assert_eq!((layout.capacity(), layout.is_apart()), (2, true));
    every_sequence(layout, 5);
}

#[test]
fn slabs_of_one_object_keep_o1_to_o4() {
    let layout = ObjectLayout::of(8192, 8192, true).unwrap();
    assert_eq!(layout.capacity(), 1);
    every_sequence(layout, 5);
}

#[test]
fn small_slabs_keep_o1_to_o4() {
    every_sequence(ObjectLayout::of(500, 0, true).unwrap(), 4);
}

#[test]
fn objects_come_in_the_order_of_their_addresses_from_a_fresh_slab() {
    for (size, constructed) in [(48, false), (48, true), (200, true), (2048, true)] {
        let layout = ObjectLayout::of(size, 0, constructed).unwrap();
        with_world(layout, 20, |world| {
            world.alloc();
            world.alloc_many(layout.capacity() - 1);
            let stride = layout.stride();
            assert!(world.out.windows(2).all(|w| w[1].at as usize == w[0].at as usize + stride));
        });
    }
}

#[test]
fn pages_are_not_touched_before_their_objects_are_allocated() {
    // Small slabs touch their record's lines only.
    let layout = ObjectLayout::of(2048, 0, true).unwrap();
    with_world(layout, 20, |world| {
        world.alloc();
        let next = world.out[0].at.wrapping_add(layout.stride());
        // SAFETY: it lies on the slab.
        let bytes = unsafe { std::slice::from_raw_parts(next, layout.stride()) };
        assert!(bytes.iter().all(|b| *b == 0xa5), "as the supplier gave it");
    });
}

#[test]
fn the_fullest_partial_slab_serves_first_and_complete_ones_last() {
    let layout = ObjectLayout::of(1024, 0, false).unwrap();
    let capacity = layout.capacity();
    with_world(layout, 20, |world| {
        assert_eq!(world.alloc_many(capacity * 3), capacity * 3);
        let all: Vec<*mut u8> = world.out.iter().map(|o| o.at).collect();
        let slab_of = |at: *mut u8| at as usize / 8192;
        let slabs: Vec<usize> = all.iter().step_by(capacity).map(|at| slab_of(*at)).collect();
        let free = |world: &mut World, slab: usize, n: usize| {
            for _ in 0..n {
                let i = world.out.iter().position(|o| slab_of(o.at) == slabs[slab]).unwrap();
                world.free(i, false);
            }
        };
        free(world, 0, capacity);
        free(world, 1, capacity - 1);
        free(world, 2, 2);
        assert_eq!((world.slabs.complete(), world.slabs.partial()), (1, 2));
        for slab in [2, 2].into_iter().chain(vec![1; capacity - 1]).chain([0]) {
            assert!(world.alloc());
            assert_eq!(slab_of(world.out.last().unwrap().at), slabs[slab]);
        }
    });
}

#[test]
fn colours_differ_from_slab_to_slab_and_come_round_or_not_at_all() {
    let layout = ObjectLayout::of(512, 0, false).unwrap();
    let (colours, step) = (layout.colours() as usize, layout.colour_step() as usize);
    assert!(colours > 4 && step == 64);
    for on in [true, false] {
        with_world(layout, 40, |world| {
            world.slabs.set_colouring(on);
            world.alloc_many(layout.capacity() * (colours + 2));
            let firsts = world.out.iter().step_by(layout.capacity()).map(|o| o.at as usize % 8192);
            let expected = (0..colours + 2).map(|i| if on { i % colours * step } else { 0 });
            assert!(firsts.eq(expected));
        });
    }
}

#[test]
fn a_write_to_a_free_object_breaks_no_slab() {
    for garbage in [u64::MAX, 3, 1 << 40, 16, 15, 0] {
        let layout = ObjectLayout::of(500, 0, false).unwrap();
        with_world(layout, 20, |world| {
            world.alloc_many(layout.capacity());
            (0..8).for_each(|_| world.free(2, false));
            let free: Vec<*mut u8> = {
                let mut all = Vec::new();
                let first = world.out.iter().map(|o| o.at).min().unwrap();
                (0..layout.capacity()).for_each(|i| all.push(first.wrapping_add(i * layout.stride())));
                all.retain(|at| world.slabs.place_of(*at).is_some_and(|p| !p.out));
                all
            };
            assert_eq!(free.len(), 8);
            for at in &free[2..5] {
                // SAFETY: the memory exists.
                (0..layout.stride() / 8).for_each(|word| unsafe { at.cast::<u64>().add(word).write(garbage) });
            }
            let mut got: Vec<*mut u8> = (0..8)
                // SAFETY: the supplier is the same.
                .map(|_| match unsafe { world.slabs.alloc(&mut world.supplier) } {
                    Some(Taken::Raw(object)) => object,
                    other => panic!("{other:?}"),
                })
                .collect();
            got.sort_unstable();
            got.dedup();
            assert_eq!(got, free, "each free object is handed out once");
            world.slabs.check().unwrap();
            // SAFETY: they are out.
            got.iter().for_each(|at| unsafe { world.slabs.free(*at, false).unwrap() });
        });
    }
}
