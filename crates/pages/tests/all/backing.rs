use super::World;
use crate::common::Op;
use craton_base::{CollapseError, Density, Floor, HugePageId, HugePages, PageRange, Pages, SpanSource};
use craton_pages::{Breaking, HugeBacking, PageHeap, PageHeapExt, Took};
use craton_sim::{Call, FaultRule, ThpMode};

const SECOND: u64 = 1_000_000_000;

fn fill(world: &mut World, hugepages: u32) {
    for _ in 0..hugepages * 256 {
        world.step(Op::Alloc { pages: 1, align: 1, dense: true }).unwrap();
    }
}

fn tick(world: &mut World) -> u32 {
    world.clock.advance(SECOND);
    world.heap.inner_mut().tick().collapsed
}

#[test]
fn a_small_heap_stays_on_small_pages() {
    let mut world = World::new(64, ThpMode::Always, HugeBacking::AUTO);
    fill(&mut world, 8);
    (0..100).for_each(|_| assert_eq!(tick(&mut world), 0));
    world.check();
    assert_eq!(world.sim.huge_bytes().0, 0);
    world.drain();
}

#[test]
fn a_dense_heap_that_grew_is_wholly_on_hugepages_after_a_while() {
    for mode in [ThpMode::Always, ThpMode::Madvise] {
        let mut world = World::new(64, mode, HugeBacking::AUTO);
        fill(&mut world, 20);
        assert_eq!(world.sim.huge_bytes(), HugePages(12).bytes());
        let collapsed: u32 = (0..10).map(|_| tick(&mut world)).sum();
        assert_eq!((collapsed, world.sim.huge_bytes()), (8, HugePages(20).bytes()));
        world.check();
        assert_eq!(world.heap.inner().figures().collapses.collapsed, 8);
        world.drain();
    }
}

#[test]
fn where_there_are_no_hugepages_none_are_expected() {
    let mut world = World::new(64, ThpMode::Never, HugeBacking::AUTO);
    fill(&mut world, 20);
    (0..10).for_each(|_| assert_eq!(tick(&mut world), 0));
    world.check();
    assert_eq!(world.sim.calls().collapse, 0);
    world.drain();
}

#[test]
fn each_error_of_a_collapse_is_counted_and_slows_the_next_rounds() {
    for error in [CollapseError::NoMemory, CollapseError::Busy, CollapseError::Again, CollapseError::Unsupported] {
        let mut world = World::new(64, ThpMode::Madvise, HugeBacking::AUTO);
        fill(&mut world, 20);
        world.sim.set_collapse_error(error);
        world.faults.set_only(Call::Collapse, FaultRule::From(1));
        let before = world.snapshot();
        for _ in 0..64 {
            assert_eq!(tick(&mut world), 0);
            world.check();
        }
        assert_eq!(world.snapshot(), before, "{error:?}");
        let (stats, tried) = (world.heap.inner().figures().collapses, world.sim.calls().collapse);
        let counted = match error {
            CollapseError::NoMemory => stats.no_memory,
            CollapseError::Busy => stats.busy,
            CollapseError::Again => stats.again,
            CollapseError::Unsupported => stats.unsupported,
        };
        assert_eq!(counted, tried, "{error:?}: {stats:?}");
        let most = if matches!(error, CollapseError::Busy | CollapseError::Again) { 4 * 64 } else { 8 };
        assert!((4..=most).contains(&tried), "{error:?}: {tried} in 64 rounds");
        world.faults.set(FaultRule::Never);
        let later: u32 = (0..300).map(|_| tick(&mut world)).sum();
        assert_eq!(later, if tried == 8 { 0 } else { 8 }, "{error:?}");
        world.drain();
    }
}

#[test]
fn a_hugepage_that_was_broken_is_guarded_until_it_is_dense_again() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::ALWAYS);
    fill(&mut world, 4);
    (0..128).for_each(|i| world.step(Op::Free { nth: 256 + i }).unwrap());
    world.step(Op::ReleaseAll(Breaking::Always)).unwrap();
    world.check();
    let heap = world.heap.inner();
    assert_eq!((heap.figures().guarded, heap.stats().broken), (HugePages(1), HugePages(1)));
    assert_eq!((heap.stats().backed, world.sim.is_huge(HugePageId(1))), (Pages(4 * 256 - 128), false));
    assert_eq!(tick(&mut world), 0, "it is not dense");
    fill(&mut world, 1);
    assert_eq!(tick(&mut world), 1);
    world.check();
    assert_eq!((world.heap.inner().figures().guarded, world.sim.is_huge(HugePageId(1))), (HugePages(0), true));
    world.drain();
}

#[test]
fn what_comes_free_on_a_broken_hugepage_goes_back_at_once() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::ALWAYS);
    fill(&mut world, 2);
    world.step(Op::Free { nth: 0 }).unwrap();
    world.step(Op::ReleaseAll(Breaking::Always)).unwrap();
    (0..100).for_each(|_| world.step(Op::Free { nth: 0 }).unwrap());
    world.check();
    assert_eq!(world.heap.inner().stats().backed, Pages(512 - 101));
    (0..155).for_each(|_| world.step(Op::Free { nth: 0 }).unwrap());
    world.check();
    assert_eq!(world.heap.inner().stats().backed, Pages(256), "and the rest when the last span is free");
    assert_eq!(world.heap.inner().figures().guarded, HugePages(0));
    world.drain();
}

#[test]
fn no_more_hugepages_are_guarded_than_mappings_can_be_afforded() {
    let mut world = World::new(4096, ThpMode::Madvise, HugeBacking::ALWAYS);
    for _ in 0..3000 {
        world.step(Op::alloc(128, 1)).unwrap();
        world.step(Op::alloc(128, 1)).unwrap();
    }
    (0..3000).for_each(|i| world.step(Op::Free { nth: i }).unwrap());
    world.heap.inner_mut().release_all(Breaking::Always);
    assert_eq!(world.heap.inner().figures().guarded, HugePages(2048));
    assert_eq!(world.heap.inner().check(), Ok(()));
}

#[test]
fn what_found_no_hugepage_frames_is_collapsed_when_there_are_some() {
    let mut world = World::new(256, ThpMode::Madvise, HugeBacking::ALWAYS);
    world.sim.set_free_frames(Some(0));
    fill(&mut world, 100);
    world.sim.set_free_frames(None);
    assert_eq!(
        (world.sim.huge_bytes().0, world.heap.inner().stats().intact),
        (0, Pages(100 * 256)),
        "as expected at first"
    );
    let collapsed: u32 = (0..60).map(|_| tick(&mut world)).sum();
    assert_eq!(collapsed, 100);
    world.check();
    assert_eq!(world.sim.huge_bytes(), HugePages(100).bytes());
    world.drain();
}

/// Longer spans would leave it out.
const IN_FRONT: [u32; 3] = [3, 3, 2];

#[test]
fn large_spans_on_small_pages_are_collapsed_too() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::AUTO);
    IN_FRONT.iter().for_each(|len| world.step(Op::alloc(len * 256, 1)).unwrap());
    fill(&mut world, 4);
    let collapsed: u32 = (0..10).map(|_| tick(&mut world)).sum();
    assert_eq!((collapsed, world.sim.huge_bytes()), (8, HugePages(12).bytes()));
    world.check();
    world.drain();
}

#[test]
fn a_large_span_that_nobody_touched_is_left_alone() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::AUTO);
    let untouched =
        IN_FRONT.map(|len| world.heap.alloc(Pages(len * 256), Pages(1), Density::Sparse).expect("room").range);
    fill(&mut world, 4);
    (0..20).for_each(|_| assert_eq!(tick(&mut world), 0));
    let first_half = PageRange::new(untouched[0].first, Pages(4 * 256));
    world.sim.touch(first_half);
    let collapsed: u32 = (0..10).map(|_| tick(&mut world)).sum();
    assert_eq!((collapsed, world.sim.calls().collapse), (4, 4));
    for span in untouched {
        world.sim.touch(span);
        world.heap.free(span, Density::Sparse).expect("it is out");
    }
    world.check();
    world.drain();
}

#[test]
fn long_spans_are_huge_in_a_small_heap_once_one_was_seen_to_be_dense_and_leave_the_front_to_others() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::AUTO);
    world.step(Op::alloc(3 * 256, 1)).unwrap();
    fill(&mut world, 1);
    (0..2).for_each(|_| world.step(Op::alloc(4 * 256, 1)).unwrap());
    assert_eq!(world.sim.huge_bytes().0, 0, "not known yet");
    world.step(Op::alloc(4 * 256, 1)).unwrap();
    assert_eq!(world.sim.huge_bytes(), HugePages(3).bytes(), "all but the one of a probe that will be looked at");
    world.step(Op::alloc(4 * 256, 1)).unwrap();
    assert_eq!(world.sim.huge_bytes(), HugePages(7).bytes(), "what is shorter, or small, is not");
    world.check();
    world.drain();
    let mut world = World::new(18, ThpMode::Madvise, HugeBacking::AUTO);
    (0..3).for_each(|_| world.step(Op::alloc(4 * 256, 1)).unwrap());
    assert_eq!(world.sim.huge_bytes(), HugePages(4).bytes());
    world.check();
    world.drain();
}

#[test]
fn the_front_of_a_heap_that_has_grown_is_huge_when_it_is_used_again() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::AUTO);
    IN_FRONT.iter().for_each(|len| world.step(Op::alloc(len * 256, 1)).unwrap());
    fill(&mut world, 8);
    for _ in IN_FRONT {
        world.step(Op::Free { nth: 0 }).unwrap();
    }
    world.step(Op::ReleaseAll(Breaking::Never)).unwrap();
    fill(&mut world, 2);
    IN_FRONT.iter().for_each(|len| world.step(Op::alloc(len * 256, 1)).unwrap());
    assert!(world.sim.huge_bytes() >= HugePages(16).bytes(), "{:?}", world.sim.huge_bytes());
    world.check();
    world.drain();
    world.step(Op::ReleaseAll(Breaking::Never)).unwrap();
    fill(&mut world, 3);
    assert_eq!(world.sim.huge_bytes().0, 0);
    world.check();
    world.drain();
}

#[test]
fn a_large_span_that_is_freed_during_a_collapse_leaves_nothing_behind() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::AUTO);
    IN_FRONT.iter().for_each(|len| world.step(Op::alloc(len * 256, 1)).unwrap());
    fill(&mut world, 4);
    world.step(Op::BeginCollapse).unwrap();
    world.step(Op::Free { nth: 0 }).unwrap();
    world.step(Op::ReleaseAll(Breaking::Never)).unwrap();
    world.check();
    world.sim.clone().back(HugePageId(0).range()).expect("nothing refuses");
    world.step(Op::EndCollapse { error: None, took_ns: 0 }).unwrap();
    world.check();
    // They may stay untouched.
    assert_eq!(world.heap.inner().stats().cached, Pages(0));
    world.step(Op::alloc(3 * 256, 1)).unwrap();
    world.check();
    world.drain();
}

#[test]
fn a_mode_that_changes_is_found_without_a_request() {
    let mut world = World::new(64, ThpMode::Never, HugeBacking::AUTO);
    fill(&mut world, 40);
    world.sim.set_thp(ThpMode::Madvise);
    let collapsed: u32 = (0..100).map(|_| tick(&mut world)).sum();
    assert_eq!((collapsed, world.sim.huge_bytes()), (40, HugePages(40).bytes()));
    world.check();
    world.drain();
}

#[test]
fn the_end_of_a_collapse_that_was_never_begun_changes_nothing() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::ALWAYS);
    fill(&mut world, 2);
    let before = world.snapshot();
    for id in [0, 1, 2, 63, 64, 1000, u32::MAX] {
        assert!(!world.heap.inner_mut().end_collapse(HugePageId(id), Ok(()), Took::default()));
    }
    assert_eq!(world.snapshot(), before);
    world.drain();
}

#[test]
fn hugepages_that_are_not_wanted_any_more_during_a_collapse_are_asked_for_until_its_end() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::ALWAYS);
    world.sim.set_free_frames(Some(0));
    world.step(Op::alloc(8 * 256, 1)).unwrap();
    world.sim.set_free_frames(None);
    world.heap.inner_mut().tick_step();
    world.step(Op::BeginCollapse).unwrap();
    world.step(Op::Back(HugeBacking::NEVER)).unwrap();
    world.step(Op::Free { nth: 0 }).unwrap();
    world.step(Op::ReleaseAll(Breaking::Never)).unwrap();
    world.step(Op::alloc(8 * 256 - 3, 1)).unwrap();
    world.check();
    assert_eq!((world.sim.is_huge(HugePageId(0)), world.sim.is_huge(HugePageId(1))), (true, false));
    world.step(Op::EndCollapse { error: None, took_ns: 0 }).unwrap();
    world.check();
    world.drain();
}

#[test]
fn a_span_whose_memory_was_moved_away_leaves_unbacked_hugepages() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::ALWAYS);
    let span = world.heap.alloc(Pages(4 * 256 + 10), Pages(1), Density::Sparse).expect("room").range;
    let small = world.heap.alloc(Pages(10), Pages(1), Density::Sparse).expect("room").range;
    world.sim.touch(span);
    world.sim.touch(small);
    let heap = world.heap.inner_mut();
    assert_eq!((heap.movable(small), heap.movable(span)), (HugePages(0), HugePages(4)));
    let not_out = PageRange::new(span.first, Pages(4 * 256));
    assert_eq!(heap.movable(not_out), HugePages(0));
    assert!(heap.free_moved(not_out).is_err());
    world.sim.clone().unback(PageRange::new(span.first, Pages(4 * 256))).expect("nothing refuses");
    world.heap.inner_mut().free_moved(span).expect("the span is out");
    let stats = world.heap.inner().stats();
    assert_eq!((stats.in_use, stats.backed, stats.cached), (Pages(10), Pages(256), Pages(0)), "all but the tail's");
    world.heap.inner().check().unwrap();
    assert!(world.heap.inner_mut().free_moved(span).is_err(), "once only");
    let again = world.heap.inner_mut().alloc(Pages(5 * 256), Pages(1), Density::Sparse).expect("room");
    assert!(!again.zeroed || again.range.first != span.first);
    world.heap.inner().check().unwrap();
}

#[test]
fn hugepages_with_memory_serve_beside_ones_without() {
    let mut world = World::new(64, ThpMode::Madvise, HugeBacking::ALWAYS);
    for hugepages in [6, 4, 6, 10] {
        world.step(Op::alloc(hugepages * 256, 1)).unwrap();
    }
    world.step(Op::Free { nth: 3 }).unwrap();
    world.step(Op::ReleaseAll(Breaking::Never)).unwrap();
    world.step(Op::Free { nth: 2 }).unwrap();
    let before = world.sim.backed_bytes();
    world.step(Op::alloc(9 * 256, 1)).unwrap();
    world.check();
    assert_eq!(world.sim.backed_bytes().0 - before.0, HugePages(3).bytes().0);
    world.step(Op::Free { nth: 1 }).unwrap();
    world.step(Op::ReleaseAll(Breaking::Never)).unwrap();
    world.step(Op::Free { nth: 1 }).unwrap();
    world.check();
    let before = world.sim.backed_bytes();
    world.step(Op::alloc(11 * 256, 1)).unwrap();
    world.check();
    assert!(world.sim.backed_bytes().0 - before.0 <= HugePages(3).bytes().0);
    world.drain();
}
