//! Random sequences, for several geometries.

use super::World;
use craton_sim::{FaultPlan, FaultRule};
use craton_slab::Geometry;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn objects_never_overlap_and_all_slabs_come_back(
        geometry in prop::sample::select(vec![
            Geometry::of(16), Geometry::of(48), Geometry::of(144), Geometry::of(1024), Geometry::of(1152), Geometry::of(5120),
            Geometry::of(20480), Geometry::parts(7, 4), Geometry::parts(9, 2), Geometry::parts(4, 1), Geometry::parts(7, 1),
        ]),
        kept in 0u16..20,
        steps in prop::collection::vec((any::<bool>(), 1u32..70), 1..60),
    ) {
        let mut world = World::keeping(geometry, kept, FaultPlan::default());
        for (take, n) in steps {
            if take && (world.out.len() * geometry.object as usize) < (6 << 20) {
                world.alloc(n);
            } else {
                let (len, n) = (world.out.len(), n as usize);
                world.free((0..len).filter(|i| i * 7919 % 97 < n));
            }
            if n % 16 == 0 {
                world.free_idle();
            }
        }
        world.drain();
    }
}

#[test]
fn a_refused_span_yields_a_shorter_chain_and_changes_nothing_else() {
    for n in 1..12 {
        let faults = FaultPlan::default();
        let mut world = World::new(Geometry::of(8192), faults.clone());
        faults.set(FaultRule::From(n));
        let mut total = 0;
        loop {
            let got = world.alloc(3);
            total += got;
            if got < 3 {
                break;
            }
        }
        assert_eq!(total % world.cache.geometry().capacity as usize, 0, "every slab that was given is used up");
        assert_eq!(world.refuse(1), 0);
        faults.set(FaultRule::Never);
        assert_eq!(world.alloc(3), 3);
        world.drain();
    }
}

#[test]
fn a_place_that_was_never_cut_is_refused_when_it_comes_back() {
    let mut world = World::new(Geometry::of(64), FaultPlan::default());
    world.alloc(3);
    assert!(world.free_place_behind(5));
    world.check();
    world.drain();
}

#[test]
fn an_object_that_comes_back_twice_in_one_chain_is_refused() {
    let mut world = World::new(Geometry::of(64), FaultPlan::default());
    world.alloc(1);
    assert!(world.free_first_twice());
    world.check();
    world.drain();
}
