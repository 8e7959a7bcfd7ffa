//! Spans that cross hugepages, packed into regions (TEMERAIRE §4.5).

use super::{P, REGION, World};
use crate::common::Op;
use craton_base::{HugePageId, HugePages, Pages, SpanError};
use craton_pages::{Breaking, HugeBacking, PageHeapExt};
use craton_sim::{FaultRule, Rng, ThpMode};

/// 1.1 MiB.
const ODD: u32 = 141;
const CAPACITY: u32 = 4096;

fn world() -> World {
    World::new(CAPACITY, ThpMode::Madvise, HugeBacking::AUTO)
}

#[test]
fn a_program_of_odd_sizes_has_a_region_and_no_slack_to_speak_of() {
    let mut world = world();
    (0..600).for_each(|_| world.step(Op::alloc(ODD, 1)).unwrap());
    world.check();
    let stats = world.heap.inner().stats();
    assert_eq!(stats.region, HugePages(512));
    let overhead = f64::from(stats.backed.0) / f64::from(stats.in_use.0) - 1.0;
    assert!(overhead < 0.05, "{overhead}: {stats:?}");
    world.drain();
    assert_eq!(world.heap.inner().stats().region, HugePages(0), "an empty region is given up");
}

#[test]
fn without_regions_the_same_program_wastes_half_its_memory() {
    let mut world = world();
    world.heap.inner_mut().set_regions(false);
    (0..600).for_each(|_| world.step(Op::alloc(ODD, 1)).unwrap());
    world.check();
    let stats = world.heap.inner().stats();
    assert_eq!(stats.region, HugePages(0));
    assert!(f64::from(stats.backed.0) / f64::from(stats.in_use.0) > 1.7, "{stats:?}");
    world.drain();
}

#[test]
fn a_long_span_of_a_region_that_comes_and_goes_costs_no_call() {
    let mut world = world();
    world.step(Op::Back(HugeBacking::ALWAYS)).unwrap();
    (0..600).for_each(|_| world.step(Op::alloc(ODD, 1)).unwrap());
    let mut after_warm_up = 0;
    for turn in 0..20 {
        world.step(Op::alloc(50 * 256 + 1, 1)).unwrap();
        assert_eq!(world.heap.inner().stats().region, HugePages(512), "it lies in the region");
        world.step(Op::Free { nth: 600 }).unwrap();
        world.step(Op::Wait { ns: 1_000_000 }).unwrap();
        if turn == 2 {
            after_warm_up = world.sim.calls().unback;
            assert!(after_warm_up <= 2, "one call takes the memory of neighbours: {after_warm_up}");
        }
    }
    assert_eq!(world.sim.calls().unback, after_warm_up, "demand that returns was given back again");
    world.check();
    world.drain();
}

#[test]
fn small_spans_that_fill_the_slack_keep_regions_away() {
    let mut world = world();
    for _ in 0..200 {
        world.step(Op::alloc(ODD, 1)).unwrap();
        (0..2).for_each(|_| world.step(Op::alloc(115, 1)).unwrap());
    }
    world.check();
    assert_eq!(world.heap.inner().stats().region, HugePages(0));
    world.drain();
}

#[test]
fn a_span_of_a_region_grows_shrinks_and_comes_back() {
    let mut world = world();
    (0..200).for_each(|_| world.step(Op::alloc(ODD, 1)).unwrap());
    assert_eq!(world.heap.inner().stats().region, HugePages(512));
    let mut rng = Rng::new(3);
    for _ in 0..3000 {
        let nth = rng.next_u64() as usize;
        let op = match rng.below(10) {
            0..=3 => Op::alloc(130 + rng.below(900) as u32, 1 << rng.below(4)),
            4..=6 => Op::Free { nth },
            7..=8 => Op::Resize { nth, pages: 1 + rng.below(900) as u32 },
            _ => Op::Wait { ns: rng.below(1 << 30) },
        };
        let before = world.snapshot();
        if world.step(op).is_err() {
            assert_eq!(world.snapshot(), before, "{op:?}");
        }
        world.check();
    }
    world.step(Op::ReleaseAll(Breaking::Always)).unwrap();
    world.check();
    assert_eq!(world.heap.inner().stats().backed, world.heap.inner().stats().in_use);
    world.drain();
}

#[test]
fn regions_survive_refused_calls() {
    let mut world = world();
    let mut rng = Rng::new(4);
    for i in 0..4000 {
        if i % 40 == 0 {
            world.faults.set(if rng.one_in(2) { FaultRule::Every(1 + rng.below(4)) } else { FaultRule::Never });
        }
        let nth = rng.next_u64() as usize;
        let op = match rng.below(10) {
            0..=4 => Op::alloc(ODD + rng.below(40) as u32, 1),
            5..=7 => Op::Free { nth },
            8 => Op::Resize { nth, pages: 1 + rng.below(400) as u32 },
            _ => Op::ReleaseAll(Breaking::Surplus),
        };
        let _ = world.step(op);
        world.check();
    }
    world.faults.set(FaultRule::Never);
    world.drain();
}

#[test]
fn when_nothing_else_is_left_small_spans_use_a_region_too() {
    let mut world = World::new(1024, ThpMode::Never, HugeBacking::AUTO);
    (0..60).for_each(|_| world.step(Op::alloc(ODD, 1)).unwrap());
    assert_eq!(world.heap.inner().stats().region, HugePages(512));
    while world.step(Op::alloc(100, 1)).is_ok() {}
    world.check();
    assert!(world.heap.live() > Pages(512 * 200 + 510 * 256), "{:?}", world.heap.live());
    world.drain();
}

#[test]
fn in_need_a_region_serves_spans_of_every_size_and_alignment() {
    let mut world = World::new(2 * REGION, ThpMode::Madvise, HugeBacking::ALWAYS);
    (0..40).for_each(|_| world.step(Op::alloc(P / 2 + 1, 1)).unwrap());
    while world.step(Op::alloc(P, 1)).is_ok() {}
    (0..3).for_each(|_| world.step(Op::Free { nth: 39 }).unwrap());
    while world.step(Op::Alloc { pages: 1, align: 1, dense: true }).is_ok() {}
    world.check();
    let before = world.snapshot();
    assert_eq!(world.step(Op::alloc(1, 1)), Err(SpanError::NoMemory));
    assert_eq!(world.snapshot(), before);
    for nth in (0..world.out.len()).rev() {
        if world.out[nth].first.hugepage() >= HugePageId(REGION) {
            world.step(Op::Free { nth }).unwrap();
        }
    }
    world.check();
    world.step(Op::alloc(1, REGION * P)).unwrap();
    world.check();
    world.drain();
}
