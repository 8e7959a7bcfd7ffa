//! Random sequences, on layouts of each kind.

use super::world::with_world;
use craton_slab::object::ObjectLayout;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(usize),
    TakeMany(usize),
    /// Every n-th object comes back.
    Give {
        each: usize,
        constructed: bool,
    },
    GiveOne(prop::sample::Index, bool),
    Reap(u32),
    Turn,
    Colouring(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..20).prop_map(Step::Take),
        3 => (0usize..80).prop_map(Step::TakeMany),
        4 => (1usize..6, any::<bool>()).prop_map(|(each, constructed)| Step::Give { each, constructed }),
        4 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(i, constructed)| Step::GiveOne(i, constructed)),
        2 => (0u32..4).prop_map(Step::Reap),
        1 => Just(Step::Turn),
        1 => any::<bool>().prop_map(Step::Colouring),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn objects_never_overlap_stay_constructed_and_all_pages_come_back(
        (size, align) in prop::sample::select(vec![
            (1, 0), (8, 0), (20, 0), (64, 64), (96, 0), (200, 8), (512, 0), (520, 0), (1000, 0), (1024, 0), (1200, 0),
            (3000, 16), (4096, 4096), (9000, 0), (100, 16384), (70_000, 0),
        ]),
        constructed: bool,
        page in prop::sample::select(vec![1 << 10, 4 << 10, 8 << 10]),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let layout = ObjectLayout::of_pages(size, align, constructed, page).unwrap();
        with_world(layout, (8 << 20) / page, |world| {
            for step in steps {
                // Fewer of large objects.
                let few = |n: usize| n.min(1 + 100_000 / layout.stride());
                match step {
                    Step::Take(n) => (0..few(n)).for_each(|_| {
                        world.alloc();
                    }),
                    Step::TakeMany(n) => {
                        world.alloc_many(few(n));
                    }
                    Step::Give { each, constructed } => {
                        (0..world.out.len()).rev().step_by(each).for_each(|i| world.free(i, constructed));
                    }
                    Step::GiveOne(i, constructed) if !world.out.is_empty() => {
                        world.free(i.index(world.out.len()), constructed);
                    }
                    Step::GiveOne(..) => (),
                    Step::Reap(keep) => world.reap(keep),
                    Step::Turn => {
                        world.slabs.turn();
                        assert!(world.slabs.idle() <= world.slabs.complete());
                        world.check();
                    }
                    Step::Colouring(on) => world.slabs.set_colouring(on),
                }
            }
        });
    }
}

#[test]
fn a_cache_of_many_slabs_finds_each_and_its_table_grows_and_shrinks() {
    for (size, objects) in [(4096, 2400), (9000, 1200)] {
        with_world(ObjectLayout::of(size, 0, true).unwrap(), 3000, |world| {
            let mut out = Vec::new();
            // SAFETY: the supplier is the same.
            unsafe {
                for _ in 0..objects {
                    out.push(world.slabs.alloc(&mut world.supplier).unwrap().object());
                }
                let most = world.slabs.stats().slabs;
                world.slabs.check().unwrap();
                for (i, object) in out.drain(..).enumerate() {
                    world.slabs.free(object, i % 2 == 0).unwrap();
                }
                let mut destroyed = 0;
                while world.slabs.complete() > 3 {
                    let keep = world.slabs.complete() - 1;
                    world.slabs.reap(keep, &mut world.supplier, |_| destroyed += 1);
                    world.slabs.check().unwrap();
                }
                world.slabs.reap(0, &mut world.supplier, |_| destroyed += 1);
                assert_eq!((destroyed, world.slabs.bytes()), (objects / 2, 0));
                assert!(most > 48, "the table's own places are not enough");
            }
        });
    }
}
