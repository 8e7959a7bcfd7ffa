use super::World;
use crate::common::Op;
use craton_base::{HugePages, PageRange};
use craton_pages::{Breaking, HugeBacking, PageHeap, PageHeapExt};
use craton_sim::{Call, FaultRule, Rng, ThpMode};

const SECOND: u64 = 1_000_000_000;

fn filled(hugepages: u32, mode: ThpMode) -> World {
    let mut world = World::new(4 * hugepages, mode, HugeBacking::ALWAYS);
    fill(&mut world, hugepages);
    world
}

fn fill(world: &mut World, hugepages: u32) {
    for _ in 0..hugepages * 256 {
        world.step(Op::Alloc { pages: 1, align: 1, dense: true }).unwrap();
    }
}

fn ticks(world: &mut World, seconds: u32) -> u32 {
    let tick = |_| {
        world.clock.advance(SECOND);
        world.heap.inner_mut().tick().collapsed
    };
    (0..seconds).map(tick).sum()
}

fn whole(world: &World) -> HugePages {
    world.sim.check().unwrap();
    assert_eq!(world.heap.inner().check(), Ok(()));
    HugePages((world.sim.huge_bytes().0 >> 21) as u32)
}

/// The heap cannot know all, so no sums are compared.
fn empty(world: &mut World) {
    while !world.out.is_empty() {
        world.step(Op::Free { nth: 0 }).unwrap();
    }
    world.heap.inner_mut().release_all(Breaking::Always);
    assert_eq!((whole(world), world.sim.backed_bytes().0), (HugePages(0), 0));
}

#[test]
fn half_of_a_heap_is_on_hugepages_where_the_system_has_half_and_the_rest_once_there_are_more() {
    let mut world = World::new(256, ThpMode::Madvise, HugeBacking::ALWAYS);
    world.sim.set_free_frames(Some(20));
    fill(&mut world, 40);
    ticks(&mut world, 60);
    assert_eq!((whole(&world), world.heap.inner().stats().intact.hugepages_up()), (HugePages(20), HugePages(20)));
    assert!(world.heap.inner().figures().collapses.no_memory > 0);
    world.sim.set_free_frames(Some(100));
    ticks(&mut world, 120);
    assert_eq!((whole(&world), world.sim.free_frames()), (HugePages(40), Some(80)));
    world.check();
    world.drain();
}

#[test]
fn hugepages_that_a_fork_split_are_whole_ten_seconds_after_the_child() {
    for mode in [ThpMode::Madvise, ThpMode::Always] {
        let mut world = filled(64, mode);
        world.sim.fork();
        let spans = world.out.clone();
        spans.iter().step_by(256).for_each(|span| world.sim.touch(*span));
        assert_eq!(whole(&world), HugePages(0), "{mode:?}");
        assert_eq!((ticks(&mut world, 10), whole(&world)), (0, HugePages(0)), "the child shares the rest");
        world.sim.end_child();
        ticks(&mut world, 10);
        assert_eq!((whole(&world), world.heap.inner().stats().intact.hugepages_up()), (HugePages(64), HugePages(64)));
        world.drain();
    }
}

#[test]
fn memory_goes_back_while_a_child_shares_it() {
    let mut world = filled(16, ThpMode::Madvise);
    world.sim.set_free_frames(Some(0));
    world.sim.fork();
    (0..8 * 256).for_each(|_| world.step(Op::Free { nth: 0 }).unwrap());
    world.heap.inner_mut().release_all(Breaking::Always);
    assert_eq!((whole(&world), world.sim.free_frames()), (HugePages(8), Some(0)));
    world.sim.end_child();
    assert_eq!(world.sim.free_frames(), Some(8));
    fill(&mut world, 8);
    assert_eq!((whole(&world), world.sim.free_frames()), (HugePages(16), Some(0)));
    world.drain();
}

#[test]
fn refused_advice_costs_hugepages_or_memory_and_no_span() {
    for mode in [ThpMode::Always, ThpMode::Madvise, ThpMode::Never] {
        for call in [Call::AdviseHuge, Call::AdviseSmall, Call::Collapse, Call::Unback, Call::Back] {
            for rule in [FaultRule::Every(1), FaultRule::Every(3)] {
                let mut world = World::new(256, mode, HugeBacking::AUTO);
                world.faults.set_only(call, rule);
                let mut rng = Rng::new(7);
                for _ in 0..2000 {
                    let dense = rng.one_in(2);
                    let pages = if dense { 1 } else { rng.size(700) as u32 };
                    world.step(Op::Alloc { pages, align: 1, dense }).unwrap();
                    if rng.one_in(2) || world.heap.inner().in_use().hugepages_up().0 > 60 {
                        world.step(Op::Free { nth: rng.below(1000) as usize }).unwrap();
                    }
                    if rng.one_in(50) {
                        ticks(&mut world, 1);
                    }
                }
                whole(&world);
                world.faults.set(FaultRule::Never);
                empty(&mut world);
            }
        }
    }
}

#[test]
fn a_random_walk_on_a_poor_system_keeps_heap_and_memory_whole() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let mut world = World::new(128, *rng.pick(&[ThpMode::Always, ThpMode::Madvise]), HugeBacking::AUTO);
        world.sim.set_free_frames(Some(30));
        world.sim.set_failing_frames(20, seed);
        // The heap cannot know which pages came singly.
        world.faultless = false;
        for _ in 0..600 {
            let pages = rng.size(600) as u32;
            match rng.below(12) {
                0..5 => drop(world.step(Op::Alloc { pages, align: 1, dense: pages < 8 })),
                5..8 => world.step(Op::Free { nth: pages as usize }).unwrap(),
                8 if world.sim.is_forked() => world.sim.end_child(),
                8 => world.sim.fork(),
                9 if !world.out.is_empty() => {
                    let span = world.out[pages as usize % world.out.len()];
                    world.sim.touch(PageRange::new(span.first, span.len));
                }
                10 => drop(world.heap.inner_mut().release_all(Breaking::Always)),
                _ => drop(ticks(&mut world, 1)),
            }
            assert!(world.sim.free_frames().is_some_and(|free| free <= 30));
        }
        whole(&world);
        if world.sim.is_forked() {
            world.sim.end_child();
        }
        empty(&mut world);
        assert_eq!(world.sim.free_frames(), Some(30), "seed {seed}");
    }
}
