use super::World;
use crate::common::Op;
use craton_base::{HugePages, Pages};
use craton_pages::{AUTO_RATE, Breaking, CACHE_MIN_HUGEPAGES, DEMAND_S, HugeBacking, PageHeapExt};
use craton_sim::ThpMode;

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

fn world() -> World {
    World::new(2048, ThpMode::Madvise, HugeBacking::ALWAYS)
}

fn second(world: &mut World) -> u64 {
    world.clock.advance(SECOND);
    world.heap.inner_mut().tick().released << craton_base::PAGE_SHIFT
}

fn half_empty(world: &mut World, hugepages: u32) {
    (0..2 * hugepages).for_each(|_| world.step(Op::alloc(128, 1)).unwrap());
    (0..hugepages as usize).for_each(|nth| world.step(Op::Free { nth }).unwrap());
}

#[test]
fn an_idle_process_gives_back_at_its_rate_and_no_faster() {
    let mut world = world();
    half_empty(&mut world, 400);
    world.heap.inner_mut().set_release_rate(10 * MIB);
    for _ in 0..DEMAND_S {
        assert_eq!(second(&mut world), 0);
    }
    let mut released = 0;
    for seconds in 1..=20u64 {
        released += second(&mut world);
        // The excess is made up for.
        assert!(released.abs_diff(10 * MIB * seconds) <= 11 * MIB, "{released} in {seconds} s");
    }
    (0..30).for_each(|_| assert!(second(&mut world) <= 11 * MIB));
    world.check();
    assert_eq!(world.heap.inner().stats().backed, Pages(400 * 128 + 12 * 128), "all but a 32nd");
    world.drain();
}

#[test]
fn a_rate_of_less_than_a_page_a_second_is_held_too() {
    let mut world = world();
    half_empty(&mut world, 4);
    world.heap.inner_mut().set_release_rate(1024);
    let released: u64 = (0..DEMAND_S + 1600).map(|_| second(&mut world)).sum();
    assert_eq!(released, 2 * MIB);
    world.check();
    world.drain();
}

#[test]
fn a_step_of_a_tick_is_short_and_the_steps_of_a_tick_are_all_of_it() {
    let mut world = world();
    half_empty(&mut world, 100);
    world.heap.inner_mut().set_release_rate(100 * MIB);
    (0..DEMAND_S).for_each(|_| assert_eq!(second(&mut world), 0));
    world.clock.advance(SECOND);
    let steps: Vec<_> = std::iter::repeat_with(|| world.heap.inner_mut().tick_step()).take(30).collect();
    let first_without = steps.iter().position(|step| !step.more).expect("an end");
    assert!(steps.iter().all(|step| step.released < 512 + 256));
    let released: u64 = steps[..=first_without].iter().map(|step| step.released).sum();
    assert_eq!(released << craton_base::PAGE_SHIFT, 97 * MIB, "all but a 32nd");
    world.check();
    world.drain();
}

#[test]
fn at_rate_0_nothing_goes_back_by_itself() {
    let mut world = world();
    half_empty(&mut world, 50);
    (0..1000).for_each(|_| assert_eq!(second(&mut world), 0));
    world.drain();
}

#[test]
fn demand_that_swings_keeps_its_memory_while_it_swings() {
    let mut world = world();
    world.heap.inner_mut().set_release_rate(1 << 40);
    (0..100).for_each(|_| world.step(Op::alloc(128, 1)).unwrap());
    let mut released = 0;
    for swing in 0..20 {
        (0..200).for_each(|_| world.step(Op::alloc(100, 1)).unwrap());
        (0..200).for_each(|_| world.step(Op::Free { nth: 100 }).unwrap());
        let in_swing: u64 = (0..DEMAND_S).map(|_| second(&mut world)).sum();
        released += if swing > 0 { in_swing } else { 0 };
    }
    assert_eq!(released, 0, "a swing within the window was given back and taken again");
    assert!(second(&mut world) > 0, "and when it has stopped, it is given back");
    world.check();
    world.drain();
}

#[test]
fn the_cache_shrinks_by_itself_when_demand_no_longer_swings() {
    let mut world = world();
    for _ in 0..4 {
        (0..100).for_each(|_| world.step(Op::alloc(256, 1)).unwrap());
        (0..100).for_each(|_| world.step(Op::Free { nth: 0 }).unwrap());
        world.clock.advance(SECOND / 10);
    }
    assert_eq!(world.heap.inner().backed(), HugePages(100));
    let released: u64 = (0..5).map(|_| second(&mut world)).sum();
    assert_eq!(released, 92 * 2 * MIB);
    world.check();
    assert_eq!(world.heap.inner().backed(), CACHE_MIN_HUGEPAGES, "no call but the tick was made");
    world.drain();
}

#[test]
fn a_short_free_range_goes_before_a_long_one_which_a_large_span_wants_back() {
    let mut world = world();
    for hugepages in [2, 1, 6, 1] {
        world.step(Op::alloc(hugepages * 256, 1)).unwrap();
    }
    world.step(Op::Free { nth: 0 }).unwrap();
    world.step(Op::Free { nth: 1 }).unwrap();
    world.step(Op::Release { pages: 2 * 256, breaking: Breaking::Never }).unwrap();
    let before = world.sim.backed_bytes();
    world.step(Op::alloc(6 * 256, 1)).unwrap();
    assert_eq!(world.sim.backed_bytes(), before, "it found its memory");
    world.check();
    world.drain();
}

#[test]
fn hugepages_that_are_mostly_free_go_before_nearly_full_ones() {
    let mut world = world();
    for pages in [128, 128, 128, 128, 240, 16, 240, 16] {
        world.step(Op::alloc(pages, 1)).unwrap();
    }
    [7, 5, 3, 1].into_iter().for_each(|nth| world.step(Op::Free { nth }).unwrap());
    let heap = world.heap.inner_mut();
    assert_eq!(heap.release(Pages(130), Breaking::Always), Ok(256));
    assert_eq!(heap.stats().intact, Pages(2 * 256));
    world.check();
    world.drain();
}

#[test]
fn free_pages_between_the_spans_of_regions_go_too() {
    let mut world = world();
    (0..200).for_each(|_| world.step(Op::alloc(256 + 140, 1)).unwrap());
    (0..100).for_each(|nth| world.step(Op::Free { nth }).unwrap());
    let heap = world.heap.inner_mut();
    assert!(heap.stats().region > HugePages(0));
    let there = heap.releasable(Breaking::Always);
    assert!(heap.release(Pages(there.0 + 1), Breaking::Always).is_err());
    assert_eq!(heap.release(there, Breaking::Always), Ok(there.0.into()));
    assert_eq!(heap.stats().backed, heap.in_use());
    world.check();
    world.drain();
}

#[test]
fn broken_hugepages_go_first_and_dense_ones_last() {
    let mut world = world();
    for _ in 0..512 {
        world.step(Op::Alloc { pages: 1, align: 1, dense: true }).unwrap();
    }
    (0..4).for_each(|_| world.step(Op::alloc(128, 1)).unwrap());
    [512, 513].into_iter().for_each(|nth| world.step(Op::Free { nth }).unwrap());
    (0..128).for_each(|_| world.step(Op::Free { nth: 0 }).unwrap());
    let heap = world.heap.inner_mut();
    assert_eq!(heap.release(Pages(1), Breaking::Always), Ok(128));
    assert_eq!((heap.stats().broken, heap.stats().dense), (HugePages(1), Pages(512 - 128)));
    world.step(Op::alloc(128, 1)).unwrap();
    world.check();
    let heap = world.heap.inner_mut();
    assert_eq!(heap.stats().free_backed, Pages(128));
    assert_eq!(heap.release(Pages(1), Breaking::Always), Ok(128));
    assert_eq!(heap.stats().broken, HugePages(2));
    world.check();
    world.drain();
}

#[test]
fn in_the_first_seconds_nothing_is_broken_up_by_itself() {
    let mut world = world();
    world.heap.inner_mut().set_release_rate(1 << 40);
    half_empty(&mut world, 50);
    let early: u64 = (0..DEMAND_S).map(|_| second(&mut world)).sum();
    assert_eq!((early, world.heap.inner().stats().broken), (0, HugePages(0)));
    assert_eq!(world.heap.inner_mut().releasable(Breaking::Surplus), Pages(0));
    assert!(second(&mut world) > 0);
    world.drain();
}

#[test]
fn an_idle_process_has_given_back_any_surplus_after_10_seconds() {
    for hugepages in [10, 200, 1500] {
        let mut world = World::new(2048, ThpMode::Madvise, HugeBacking::ALWAYS);
        world.heap.inner_mut().set_release_rate(AUTO_RATE);
        half_empty(&mut world, hugepages);
        (0..10).for_each(|_| _ = second(&mut world));
        let stats = world.heap.inner().stats();
        assert!(stats.backed.0 <= hugepages * 128 * 17 / 16 + 128, "{} of {hugepages} hugepages", stats.backed.0);
        world.drain();
    }
}
