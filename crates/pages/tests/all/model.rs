//! Random sequences against the naive model.

use super::{P, World};
use crate::common::Op;
use craton_base::HugePageId;
use craton_pages::{Breaking, HugeBacking, WINDOW_NS};
use craton_sim::ThpMode;
use proptest::prelude::*;

pub(super) const CAPACITY: u32 = 40;
pub(super) const MODES: [ThpMode; 3] = [ThpMode::Always, ThpMode::Madvise, ThpMode::Never];

fn pages() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 1..P.div_ceil(12) + 1,
        3 => P.div_ceil(12)..P + 1,
        2 => (1..6u32, -2..3i32).prop_map(|(hugepages, off)| (hugepages * P).saturating_add_signed(off)),
        2 => P + 1..8 * P,
        1 => prop_oneof![Just(0), Just(CAPACITY * P), Just(CAPACITY * P + 1), Just(u32::MAX)],
    ]
}

fn breaking() -> impl Strategy<Value = Breaking> {
    prop_oneof![Just(Breaking::Never), Just(Breaking::Surplus), Just(Breaking::Always)]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        7 => (pages(), prop_oneof![6 => Just(0u32), 3 => 1..8u32, 1 => 8..12u32])
            .prop_map(|(pages, log)| Op::alloc(pages, 1 << log)),
        // As slabs of small objects.
        5 => (prop_oneof![6 => (0..4u32).prop_map(|log| 1 << log), 1 => pages()], 0..4u32)
            .prop_map(|(pages, log)| Op::Alloc { pages, align: 1 << log, dense: true }),
        8 => any::<usize>().prop_map(|nth| Op::Free { nth }),
        // The seam asks for one.
        6 => (any::<usize>(), pages()).prop_map(|(nth, pages)| Op::Resize { nth, pages: pages.max(1) }),
        1 => (0..8 * P, breaking()).prop_map(|(pages, breaking)| Op::Release { pages, breaking }),
        1 => breaking().prop_map(Op::ReleaseAll),
        2 => Just(Op::Tick),
        1 => prop_oneof![Just(0), 0..1u64 << 30, Just(u64::MAX)].prop_map(|bytes_per_s| Op::Rate { bytes_per_s }),
        1 => (0..CAPACITY).prop_map(|from| Op::Back(HugeBacking { from: HugePageId(from) })),
        2 => prop_oneof![3 => 0..2 * WINDOW_NS, 1 => 0..200_000_000_000u64].prop_map(|ns| Op::Wait { ns }),
    ]
}

pub(super) fn replay(ops: &[Op], mut world: World) {
    for op in ops {
        if matches!(op, Op::Alloc { pages: 0, .. }) {
            continue;
        }
        let before = world.snapshot();
        if world.step(*op).is_err() {
            assert_eq!(world.snapshot(), before, "{op:?} was refused, and yet changed something");
            if let Op::Alloc { pages, align, .. } = *op {
                assert!(world.refusal_is_right(pages, align), "{op:?} was refused without need");
            }
        }
        world.check();
    }
    world.drain();
}

pub(super) fn config() -> ProptestConfig {
    let cases = if crate::common::full() { 20_000 } else { 1_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_heap_agrees_with_the_model(ops in prop::collection::vec(op(), 1..120), mode in 0..3usize) {
        replay(&ops, World::new(CAPACITY, MODES[mode], HugeBacking::AUTO));
    }
}
