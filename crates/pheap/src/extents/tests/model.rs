//! Any sequence of operations, reopened at the end.

use super::world::{World, config, reopen};
use crate::extents::ExtentKind;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Alloc(u32, bool),
    Free(usize),
    Advance(usize),
    Cancel(usize),
    Settle,
    Tick(u64),
}

fn pages() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1_u32..16, 4 => Just(16), 3 => 17_u32..130, 1 => (1_u32..5).prop_map(|n| n * 16), 1 => 500_u32..1100]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (pages(), any::<bool>()).prop_map(|(pages, is_slab)| Step::Alloc(pages, is_slab)),
        8 => any::<usize>().prop_map(Step::Free),
        40 => any::<usize>().prop_map(Step::Advance),
        2 => any::<usize>().prop_map(Step::Cancel),
        1 => Just(Step::Settle),
        1 => (0_u64..3000).prop_map(Step::Tick),
    ]
}

fn run<const F: bool>(steps: Vec<Step>, stripes: u32) {
    let config = config(stripes, 2048);
    let mut world: World<F> = World::new(32 << 20, config);
    for step in steps {
        match step {
            Step::Alloc(pages, is_slab) => {
                let kind = if is_slab { ExtentKind::Slab } else { ExtentKind::Object };
                let _ = world.plan_alloc(pages, kind);
            }
            Step::Free(nth) => {
                let free = |page: &u64| world.under.iter().all(|under| under.plan.page != *page);
                let can: Vec<u64> = world.live.keys().copied().filter(free).collect();
                if !can.is_empty() {
                    world.plan_free(can[nth % can.len()]).unwrap();
                }
            }
            Step::Advance(nth) if !world.under.is_empty() => world.advance(nth % world.under.len()),
            Step::Cancel(nth) if !world.under.is_empty() => world.cancel(nth % world.under.len()),
            Step::Settle => world.settle(),
            Step::Tick(ms) => world.tick(ms),
            _ => {}
        }
        world.check();
    }
    world.drain();
    world.check();
    let after = reopen(world.medium.clone(), config);
    after.check();
    assert_eq!(after.live, world.live);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_list(steps in prop::collection::vec(step(), 1..3000), stripes in 1_u32..17) {
        run::<true>(steps, stripes);
    }
}
