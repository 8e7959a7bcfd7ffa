//! The n-th call to the floor is refused, for every n: the state is as before.

use super::{P, World};
use crate::common::{Op, full};
use craton_base::CollapseError;
use craton_pages::{Breaking, HugeBacking};
use craton_sim::{Call, FaultRule, Rng, ThpMode};

const KINDS: [Call; 3] = [Call::Reserve, Call::Unback, Call::Collapse];

struct Script {
    capacity: u32,
    ops: Vec<Op>,
}

const BACKGROUND: [Op; 15] = [
    Op::Helped(true),
    Op::Wait { ns: 1 << 31 },
    Op::Tick,
    Op::BeginCollapse,
    Op::alloc(1, 1),
    Op::BeginCollapse,
    Op::Free { nth: 7 },
    Op::EndCollapse { error: None, took_ns: 0 },
    Op::EndCollapse { error: Some(CollapseError::Busy), took_ns: 0 },
    Op::alloc(2048, 1),
    Op::Clear { fails: false },
    Op::Clear { fails: true },
    Op::BeginRefill,
    Op::EndCollapse { error: None, took_ns: 0 },
    Op::Tick,
];

fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let mut ops = vec![Op::Rate { bytes_per_s: 1 << 22 }];
    for round in 0..4 {
        for _ in 0..60 {
            let nth = rng.next_u64() as usize;
            let pages = rng.size(u64::from(8 * P)) as u32;
            ops.push(match rng.below(10) {
                0..=4 => Op::Alloc { pages, align: 1 << rng.below(4), dense: pages <= 8 },
                5 => Op::alloc(pages, 2 * P),
                6 | 7 => Op::Resize { nth, pages },
                _ => Op::Free { nth },
            });
        }
        ops.extend((0..40).map(|_| Op::alloc(P.div_ceil(16), 1)));
        ops.extend(BACKGROUND);
        ops.extend((0..25).map(|_| Op::Free { nth: rng.next_u64() as usize }));
        ops.push(Op::Release { pages: 3 * P, breaking: Breaking::Never });
        ops.push(Op::ReleaseAll(if round % 2 == 1 { Breaking::Always } else { Breaking::Surplus }));
        ops.extend(BACKGROUND);
    }
    Script { capacity: 200, ops }
}

fn script_with_regions(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let mut ops = Vec::new();
    for _ in 0..3 {
        ops.extend((0..40).map(|_| Op::alloc(P / 2 + 1 + rng.below(u64::from(P / 8)) as u32, 1)));
        ops.extend(
            (0..10)
                .map(|_| Op::Resize { nth: rng.next_u64() as usize, pages: rng.in_range(1..u64::from(2 * P)) as u32 }),
        );
        ops.extend((0..35).map(|_| Op::Free { nth: rng.next_u64() as usize }));
        ops.extend([Op::ReleaseAll(Breaking::Surplus), Op::ReleaseAll(Breaking::Always), Op::Wait { ns: 1 << 31 }]);
        ops.push(Op::Tick);
    }
    Script { capacity: 1100, ops }
}

fn scripts() -> Vec<Script> {
    let seeds = 0..if full() { 20 } else { 1 };
    seeds.clone().map(script).chain(seeds.map(script_with_regions)).collect()
}

/// A refused step leaves no trace, and is granted without the fault, unless refused anyway. Returns
/// the steps refused for the fault.
fn run(script: &Script, only: Option<Call>, rule: FaultRule, from: usize) -> u32 {
    let mut world = World::new(script.capacity, ThpMode::Madvise, HugeBacking::AUTO);
    let (mut failed, mut refused) = (0, 0);
    match only {
        Some(call) => world.faults.set_only(call, rule),
        None => world.faults.set(rule),
    }
    for (i, op) in script.ops.iter().enumerate() {
        if i < from {
            let _ = world.step(*op);
            continue;
        }
        let before = world.snapshot();
        let result = world.step(*op);
        let faulty = world.faults.refused() > refused;
        refused = world.faults.refused();
        if faulty || i % 16 == 0 {
            world.check();
        }
        if result.is_err() {
            assert_eq!(world.snapshot(), before, "{op:?} was refused, and yet changed something");
            if faulty {
                failed += 1;
                refused = 0;
                world.faults.set(FaultRule::Never);
                assert_eq!(world.step(*op), Ok(()), "{op:?} is refused with the fault gone");
            }
        }
    }
    world.faults.set(FaultRule::Never);
    world.drain();
    failed
}

fn floor_calls(script: &Script, only: Option<Call>) -> Vec<usize> {
    let mut world = World::new(script.capacity, ThpMode::Madvise, HugeBacking::AUTO);
    if let Some(call) = only {
        world.faults.set_only(call, FaultRule::Never);
    }
    let mut steps = Vec::new();
    for (i, op) in script.ops.iter().enumerate() {
        let _ = world.step(*op);
        steps.resize(world.faults.calls() as usize, i);
    }
    steps
}

#[test]
fn the_scripts_make_every_kind_of_call_and_have_regions() {
    for kind in KINDS {
        assert!(scripts().iter().any(|script| floor_calls(script, Some(kind)).len() > 1), "{kind:?}");
    }
    let script = script_with_regions(0);
    let mut world = World::new(script.capacity, ThpMode::Madvise, HugeBacking::AUTO);
    let regions = script.ops.iter().filter(|op| {
        let _ = world.step(**op);
        world.heap.inner().stats().region.0 > 0
    });
    assert!(regions.count() > 50);
}

#[test]
fn one_refused_floor_call_is_survived_wherever_it_comes() {
    for script in scripts() {
        for kind in KINDS.map(Some) {
            for (n, step) in (1..).zip(floor_calls(&script, kind)) {
                run(&script, kind, FaultRule::Nth(n), step);
            }
        }
    }
}

#[test]
fn a_floor_that_refuses_from_some_call_on_is_survived_and_serves_later() {
    for script in scripts() {
        let calls = floor_calls(&script, None);
        let failed: u32 = (1..).zip(calls).map(|(n, step)| run(&script, None, FaultRule::From(n), step)).sum();
        assert!(failed > 0, "no request was refused for want of memory");
        run(&script, Some(Call::Unback), FaultRule::From(1), 0);
        run(&script, Some(Call::Collapse), FaultRule::From(1), 0);
    }
}

#[test]
fn a_floor_that_refuses_every_second_call_is_survived() {
    for seed in 0..10 {
        run(&script(seed), None, FaultRule::Every(2), 0);
        run(&script_with_regions(seed), None, FaultRule::Every(2), 0);
    }
}

#[test]
fn with_every_floor_call_refused_the_background_changes_nothing() {
    for script in scripts() {
        for stop in (0..script.ops.len()).step_by(7) {
            let mut world = World::new(script.capacity, ThpMode::Madvise, HugeBacking::AUTO);
            for op in &script.ops[..stop] {
                let _ = world.step(*op);
            }
            while !world.collapsing.is_empty() {
                world.step(Op::EndCollapse { error: None, took_ns: 0 }).unwrap();
            }
            world.faults.set(FaultRule::From(1));
            let before = world.snapshot();
            for op in [
                Op::Tick,
                Op::Release { pages: 1, breaking: Breaking::Always },
                Op::ReleaseAll(Breaking::Never),
                Op::ReleaseAll(Breaking::Surplus),
                Op::ReleaseAll(Breaking::Always),
                Op::alloc(script.capacity * P, 1),
                Op::Tick,
            ] {
                let _ = world.step(op);
                assert_eq!(world.snapshot(), before, "{op:?} after {stop} steps");
            }
            world.check();
            world.faults.set(FaultRule::Never);
            world.drain();
        }
    }
}

#[test]
fn memory_that_the_floor_would_not_take_back_is_kept_and_reused() {
    let mut world = World::new(200, ThpMode::Never, HugeBacking::AUTO);
    let fill = Op::alloc(P, 1);
    (0..40).for_each(|_| world.step(fill).unwrap());
    world.faults.set(FaultRule::From(1));
    (0..40).for_each(|_| world.step(Op::Free { nth: 0 }).unwrap());
    world.check();
    assert_eq!(world.heap.inner().stats().cached.0, 40 * P);
    (0..40).for_each(|_| world.step(fill).unwrap());
    assert_eq!(world.heap.inner().stats().cached.0, 0);
    world.faults.set(FaultRule::Never);
    world.drain();
}
