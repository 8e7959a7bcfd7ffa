//! Where two mechanisms meet.

use super::{P, REGION, World};
use crate::common::Op;
use craton_base::{CollapseError, HugePageId, HugePages, PAGE_SIZE, PageId, Pages, SpanError};
use craton_pages::{Breaking, HugeBacking, PageHeap};
use craton_sim::{FaultRule, ThpMode};

const SECOND: u64 = 1_000_000_000;
const END: Op = Op::EndCollapse { error: None, took_ns: 0 };

fn world(capacity: u32) -> World {
    World::new(capacity, ThpMode::Madvise, HugeBacking::ALWAYS)
}

fn dense(pages: u32) -> Op {
    Op::Alloc { pages, align: 1, dense: true }
}

fn ok(world: &mut World, op: Op) {
    world.step(op).unwrap_or_else(|error| panic!("{op:?}: {error}"));
    world.check();
}

fn refused(world: &mut World, op: Op) {
    let before = world.snapshot();
    assert_eq!(world.step(op), Err(SpanError::NoMemory), "{op:?}");
    assert_eq!(world.snapshot(), before, "{op:?}");
    world.check();
}

fn backed(world: &World) -> u32 {
    (world.sim.backed_bytes().0 / PAGE_SIZE) as u32
}

#[test]
fn when_no_hugepage_is_left_a_long_span_goes_to_a_dense_one() {
    let mut world = world(2);
    ok(&mut world, Op::alloc(P, 1));
    ok(&mut world, dense(1));
    ok(&mut world, Op::alloc(P - 1, 1));
    refused(&mut world, Op::alloc(1, 1));
    ok(&mut world, Op::Resize { nth: 2, pages: 1 });
    ok(&mut world, dense(1));
    ok(&mut world, Op::Free { nth: 1 });
    world.drain();
}

#[test]
fn when_no_hugepage_is_left_a_dense_span_goes_to_a_gap_that_is_no_block() {
    let mut world = world(1);
    (0..P).for_each(|_| ok(&mut world, dense(1)));
    (1..4).for_each(|_| ok(&mut world, Op::Free { nth: 1 }));
    ok(&mut world, dense(3));
    assert_eq!(world.out.last().map(|span| span.first), Some(PageId(1)));
    refused(&mut world, dense(1));
    world.drain();
}

#[test]
fn when_no_hugepage_is_left_every_hugepage_of_a_list_is_tried() {
    let mut world = world(2);
    // The first one's span is in its middle.
    (0..2 * P).for_each(|_| ok(&mut world, dense(1)));
    let keep = [0, P + P / 2];
    for page in (0..2 * P).rev().filter(|page| !keep.contains(page)) {
        ok(&mut world, Op::Free { nth: page as usize });
    }
    ok(&mut world, Op::alloc(P - 2, 1));
    ok(&mut world, Op::alloc(P / 2, 1));
    refused(&mut world, Op::alloc(P / 2, 1));
    world.drain();
}

#[test]
fn a_sparse_span_on_a_dense_hugepage_takes_all_of_it_when_it_grows() {
    let mut world = world(3);
    ok(&mut world, Op::alloc(2 * P, 1));
    ok(&mut world, dense(1));
    ok(&mut world, Op::alloc(2, 1));
    ok(&mut world, Op::Free { nth: 1 });
    ok(&mut world, Op::alloc(1, 1));
    assert_eq!(world.out.last().map(|span| span.first), Some(PageId(2 * P)));
    ok(&mut world, Op::Free { nth: 1 });
    ok(&mut world, Op::Resize { nth: 1, pages: P });
    ok(&mut world, Op::Free { nth: 0 });
    ok(&mut world, dense(1));
    world.drain();
}

#[test]
fn a_broken_tail_is_resized_in_every_direction() {
    let mut world = world(4);
    ok(&mut world, Op::alloc(P + P / 2, 1));
    ok(&mut world, Op::alloc(P / 4, 1));
    ok(&mut world, Op::ReleaseAll(Breaking::Always));
    assert_eq!((world.heap.inner().figures().guarded, backed(&world)), (HugePages(1), P + 3 * P / 4));
    // Up to the neighbour and not beyond.
    ok(&mut world, Op::Resize { nth: 0, pages: P + 1 });
    assert_eq!(backed(&world), P + P / 4 + 1, "what comes free on a broken hugepage goes back");
    ok(&mut world, Op::Resize { nth: 0, pages: P + P / 2 });
    refused(&mut world, Op::Resize { nth: 0, pages: P + P / 2 + 1 });
    refused(&mut world, Op::Resize { nth: 0, pages: 3 * P });
    ok(&mut world, Op::Free { nth: 1 });
    ok(&mut world, Op::Resize { nth: 0, pages: 3 * P + 1 });
    assert_eq!(world.heap.inner().figures().guarded, HugePages(0));
    ok(&mut world, Op::Resize { nth: 0, pages: P + 1 });
    ok(&mut world, Op::alloc(P - 1, 1));
    ok(&mut world, Op::Resize { nth: 0, pages: P });
    ok(&mut world, Op::Resize { nth: 0, pages: 1 });
    world.drain();
}

#[test]
fn a_tail_outlived_by_its_guests_is_no_longer_donated() {
    let mut world = world(4);
    ok(&mut world, Op::alloc(P + 1, 1));
    (0..3).for_each(|_| ok(&mut world, Op::alloc(1, 1)));
    assert_eq!(world.heap.inner().stats().slack, Pages(P - 4));
    ok(&mut world, Op::Free { nth: 0 });
    assert_eq!(world.heap.inner().stats().slack, Pages(0));
    ok(&mut world, Op::alloc(P + 1, 1));
    world.drain();
}

fn collapsing(capacity: u32) -> World {
    let mut world = world(capacity);
    ok(&mut world, Op::alloc(P / 2, 1));
    ok(&mut world, Op::alloc(P / 2, 1));
    ok(&mut world, Op::Free { nth: 1 });
    ok(&mut world, Op::ReleaseAll(Breaking::Always));
    ok(&mut world, Op::alloc(P / 2 - 1, 1));
    ok(&mut world, Op::BeginCollapse);
    assert_eq!(
        (world.collapsing.as_slice(), world.heap.inner().figures().guarded),
        (&[HugePageId(0)][..], HugePages(0))
    );
    world
}

#[test]
fn a_collapse_whose_hugepage_came_free_meanwhile_ends_well() {
    for error in [None, Some(CollapseError::NoMemory), Some(CollapseError::Unsupported)] {
        let mut world = collapsing(4);
        ok(&mut world, Op::Free { nth: 0 });
        ok(&mut world, Op::Free { nth: 0 });
        ok(&mut world, Op::ReleaseAll(Breaking::Always));
        assert_eq!(backed(&world), P - 1, "its memory stays while it is collapsed");
        ok(&mut world, Op::EndCollapse { error, took_ns: 0 });
        ok(&mut world, Op::ReleaseAll(Breaking::Always));
        assert_eq!(backed(&world), 0);
        ok(&mut world, Op::alloc(P, 1));
        world.drain();
    }
}

#[test]
fn a_hugepage_that_came_free_during_its_collapse_is_used_again_before_the_end() {
    let mut world = collapsing(1);
    ok(&mut world, Op::Free { nth: 0 });
    ok(&mut world, Op::Free { nth: 0 });
    refused(&mut world, Op::alloc(P, 1));
    ok(&mut world, Op::alloc(P / 2, 1));
    ok(&mut world, Op::alloc(P - P / 2 - 1, 1));
    ok(&mut world, END);
    assert!(world.sim.is_huge(HugePageId(0)));
    ok(&mut world, Op::BeginCollapse);
    assert!(world.collapsing.is_empty(), "it is on a hugepage already");
    world.drain();
}

#[test]
fn a_span_does_not_leave_its_hugepage_while_that_is_collapsed() {
    let mut world = collapsing(4);
    ok(&mut world, Op::Free { nth: 1 });
    refused(&mut world, Op::Resize { nth: 0, pages: P });
    refused(&mut world, Op::Resize { nth: 0, pages: 2 * P + 1 });
    ok(&mut world, Op::Resize { nth: 0, pages: P - 1 });
    ok(&mut world, Op::Resize { nth: 0, pages: 1 });
    ok(&mut world, END);
    ok(&mut world, Op::Resize { nth: 0, pages: 2 * P + 1 });
    world.drain();
}

#[test]
fn a_tail_that_is_collapsed_comes_back_with_its_span() {
    let mut world = world(3);
    ok(&mut world, Op::alloc(P + P / 2, 1));
    ok(&mut world, Op::ReleaseAll(Breaking::Always));
    ok(&mut world, Op::Resize { nth: 0, pages: 2 * P - 1 });
    ok(&mut world, Op::BeginCollapse);
    assert_eq!(world.collapsing, [HugePageId(1)]);
    refused(&mut world, Op::Resize { nth: 0, pages: 3 * P });
    ok(&mut world, Op::Free { nth: 0 });
    ok(&mut world, Op::alloc(P, 1));
    ok(&mut world, END);
    world.drain();
}

#[test]
fn a_failed_collapse_leaves_a_broken_hugepage_guarded() {
    let mut world = collapsing(4);
    ok(&mut world, Op::EndCollapse { error: Some(CollapseError::Busy), took_ns: SECOND });
    assert_eq!(world.heap.inner().figures().guarded, HugePages(1));
    ok(&mut world, Op::BeginCollapse);
    ok(&mut world, END);
    assert_eq!(world.heap.inner().figures().guarded, HugePages(0));
    world.drain();
}

#[test]
fn what_a_small_heap_had_collapsed_is_on_small_pages_when_it_is_used_anew() {
    let mut world = World::new(8, ThpMode::Madvise, HugeBacking { from: HugePageId(2) });
    (0..4).for_each(|_| ok(&mut world, Op::alloc(P - 1, 1)));
    [Op::BeginCollapse, END].into_iter().cycle().take(6).for_each(|op| ok(&mut world, op));
    assert_eq!(world.sim.huge_bytes(), Pages(4 * P).bytes());
    (0..4).for_each(|_| ok(&mut world, Op::Free { nth: 0 }));
    ok(&mut world, Op::ReleaseAll(Breaking::Always));
    ok(&mut world, Op::alloc(1, 1));
    assert_eq!(backed(&world), 1, "a page is not a hugepage's worth of memory");
    world.drain();
}

#[test]
fn a_change_of_backing_goes_over_guards_and_collapses() {
    for (first, second) in [
        (HugeBacking::NEVER, HugeBacking::ALWAYS),
        (HugeBacking { from: HugePageId(1) }, HugeBacking { from: HugePageId(2) }),
        (HugeBacking::ALWAYS, HugeBacking::NEVER),
    ] {
        let mut world = collapsing(4);
        ok(&mut world, Op::alloc(P / 2, 1));
        ok(&mut world, Op::ReleaseAll(Breaking::Always));
        ok(&mut world, Op::Back(first));
        ok(&mut world, Op::ReleaseAll(Breaking::Always));
        ok(&mut world, END);
        ok(&mut world, Op::Back(second));
        (0..3).for_each(|_| ok(&mut world, Op::Free { nth: 0 }));
        ok(&mut world, Op::alloc(P, 1));
        world.drain();
        assert_eq!(world.heap.inner().figures().guarded, HugePages(0));
    }
}

#[test]
fn a_hugepage_of_which_nothing_could_be_released_is_not_guarded() {
    let mut world = world(2);
    ok(&mut world, Op::alloc(P / 2, 1));
    ok(&mut world, Op::Refuse(FaultRule::From(1)));
    ok(&mut world, Op::ReleaseAll(Breaking::Always));
    assert_eq!((world.heap.inner().figures().guarded, backed(&world)), (HugePages(0), P));
    ok(&mut world, Op::Refuse(FaultRule::Never));
    world.drain();
}

#[test]
fn no_hugepage_is_broken_while_a_free_one_has_memory() {
    let mut world = World::new(8, ThpMode::Never, HugeBacking::ALWAYS);
    let sizes = [P / 2, P / 2, P / 2 + 1, P / 2 + 1, P / 2 + 1];
    sizes.iter().for_each(|pages| ok(&mut world, Op::alloc(*pages, 1)));
    (0..4).for_each(|_| ok(&mut world, Op::Free { nth: 1 }));
    let before = backed(&world);
    ok(&mut world, Op::Release { pages: P + P / 2, breaking: Breaking::Always });
    assert_eq!((before, backed(&world)), (P + 3 * (P / 2 + 1), P));
    assert_eq!(world.heap.inner().stats().broken, HugePages(0));
    world.drain();
}

fn slack(world: &mut World, spans: u32) {
    (0..spans).for_each(|_| ok(world, Op::alloc(P / 2 + 1, 1)));
}

#[test]
fn a_region_at_the_end_of_the_heap_ends_there() {
    let mut world = world(2 * REGION);
    slack(&mut world, 40.min(REGION + 1));
    let end = 2 * REGION * P;
    assert_eq!(world.heap.inner().stats().region, HugePages(REGION));
    while world.step(Op::alloc(P / 2 + 1, 1)).is_ok() {}
    world.check();
    let last = (0..world.out.len()).max_by_key(|nth| world.out[*nth].first).unwrap();
    let span = world.out[last];
    assert!(end - span.end().0 < P / 2 + 1);
    for pages in [end - span.first.0 + 1, end - P, end] {
        refused(&mut world, Op::Resize { nth: last, pages });
    }
    ok(&mut world, Op::Resize { nth: last, pages: end - span.first.0 });
    ok(&mut world, Op::Resize { nth: last, pages: 1 });
    world.drain();
    assert_eq!(world.heap.inner().stats().region, HugePages(0));
}

#[test]
fn a_heap_without_room_for_a_region_has_none() {
    for capacity in [REGION - 1, REGION, 2 * REGION - 1] {
        let mut world = world(capacity);
        let few = capacity.min(60);
        slack(&mut world, few);
        while world.step(Op::alloc(P / 2 + 1, 1)).is_ok() {}
        assert_eq!((world.heap.inner().stats().region, world.out.len()), (HugePages(0), capacity as usize));
        world.check();
        world.drain();
    }
}
