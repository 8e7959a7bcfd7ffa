//! The n-th call to the floor is refused, for every n: the heap's state is as before, and it serves again later.

mod common;

use common::{Op, P, World};
use craton_pages::{Breaking, HugeBacking};
use craton_sim::{FaultRule, Rng, ThpMode};

const CAPACITY: u32 = 200;

/// A walk that makes the heap grow, empty its cache, break hugepages, and stretch spans over its end.
fn script(seed: u64) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    let mut ops = Vec::new();
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
        ops.extend((0..25).map(|_| Op::Free { nth: rng.next_u64() as usize }));
        ops.extend([Op::Wait { ns: 1 << 31 }, Op::Tick]);
        ops.push(Op::Release { pages: 3 * P, breaking: Breaking::Never });
        ops.push(Op::ReleaseAll(if round % 2 == 1 { Breaking::Always } else { Breaking::Surplus }));
    }
    ops
}

/// Runs the script under a rule; whatever a step is refused, it is refused without a trace, and is granted when asked again
/// with the fault gone, unless it is refused without a fault too. Returns how many steps were refused for the fault.
fn run(ops: &[Op], rule: FaultRule) -> u32 {
    let mut world = World::new(CAPACITY, ThpMode::Madvise, HugeBacking::AUTO);
    let mut failed = 0;
    world.faults.set(rule);
    for op in ops {
        let before = world.snapshot();
        let refused_before = world.faults.refused();
        if world.step(*op).is_err() {
            assert_eq!(world.snapshot(), before, "{op:?} was refused, and yet changed something");
            world.check();
            if world.faults.refused() > refused_before {
                failed += 1;
                world.faults.set(FaultRule::Never);
                assert_eq!(world.step(*op), Ok(()), "{op:?} is refused with the fault gone");
            }
        }
        world.check();
    }
    world.faults.set(FaultRule::Never);
    world.drain();
    failed
}

fn floor_calls(ops: &[Op]) -> u64 {
    let mut world = World::new(CAPACITY, ThpMode::Madvise, HugeBacking::AUTO);
    world.faults.set(FaultRule::Never);
    for op in ops {
        let _ = world.step(*op);
    }
    world.faults.calls()
}

#[test]
fn one_refused_floor_call_is_survived_wherever_it_comes() {
    for seed in 0..3 {
        let ops = script(seed);
        let calls = floor_calls(&ops);
        assert!(calls > 10, "the script asks the floor for too little: {calls} calls");
        for n in 1..=calls {
            run(&ops, FaultRule::Nth(n));
        }
    }
}

#[test]
fn a_floor_that_refuses_from_some_call_on_is_survived_and_serves_later() {
    for seed in 0..3 {
        let ops = script(seed);
        let failed: u32 = (1..=floor_calls(&ops)).map(|n| run(&ops, FaultRule::From(n))).sum();
        assert!(failed > 0, "no request was refused for want of memory: seed {seed}");
    }
}

#[test]
fn a_floor_that_refuses_every_second_call_is_survived() {
    for seed in 0..10 {
        run(&script(seed), FaultRule::Every(2));
    }
}

#[test]
fn memory_that_the_floor_would_not_take_back_is_kept_and_reused() {
    let mut world = World::new(CAPACITY, ThpMode::Never, HugeBacking::AUTO);
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
