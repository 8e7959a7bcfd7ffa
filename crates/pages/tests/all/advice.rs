use super::World;
use craton_base::{Advice, Density, HugePages, PAGES_PER_HUGEPAGE, PageRange, Pages, SpanSource};
use craton_pages::{HugeBacking, PageHeapExt};
use craton_sim::ThpMode;

const HUGE: Pages = Pages(PAGES_PER_HUGEPAGE);

fn world(backing: HugeBacking) -> World {
    World::new(64, ThpMode::Madvise, backing)
}

/// Touches it; returns the hugepages gained.
fn advised(world: &mut World, pages: Pages, advice: Advice) -> (PageRange, HugePages) {
    let before = world.sim.huge_bytes().0;
    let range = world.heap.inner_mut().alloc(pages, HUGE, Density::Sparse).unwrap().range;
    world.heap.inner_mut().advise_span(range, advice);
    world.sim.touch(range);
    (range, HugePages(((world.sim.huge_bytes().0 - before) / HugePages(1).bytes().0) as u32))
}

#[test]
fn a_span_that_is_asked_to_be_huge_is_so_in_a_heap_on_small_pages() {
    let mut world = world(HugeBacking::NEVER);
    let (range, huge) = advised(&mut world, HUGE, Advice::Huge);
    assert_eq!(huge, HugePages(1));
    world.heap.inner_mut().unadvise_span(range, Advice::Huge);
    world.heap.inner_mut().free(range, Density::Sparse).unwrap();
    world.heap.inner_mut().check().unwrap();
    let (_, huge) = advised(&mut world, Pages(2 * HUGE.0), Advice::Small);
    assert_eq!(huge, HugePages(0), "what was asked for one span does not hold for the next");
}

#[test]
fn a_span_that_is_asked_to_be_small_is_so_in_a_heap_on_hugepages() {
    let mut world = world(HugeBacking::ALWAYS);
    let (range, huge) = advised(&mut world, Pages(2 * HUGE.0), Advice::Small);
    assert_eq!(huge, HugePages(0));
    world.heap.inner_mut().unadvise_span(range, Advice::Small);
    world.heap.inner_mut().free(range, Density::Sparse).unwrap();
    world.heap.inner_mut().check().unwrap();
    let (_, huge) = advised(&mut world, Pages(8 * HUGE.0), Advice::Huge);
    assert!(huge >= HugePages(6), "{huge:?}");
}

#[test]
fn advice_that_is_the_usual_one_costs_no_call() {
    let mut world = world(HugeBacking::ALWAYS);
    let range = world.heap.inner_mut().alloc(HUGE, HUGE, Density::Sparse).unwrap().range;
    let before = world.sim.calls().advise;
    world.heap.inner_mut().advise_span(range, Advice::Huge);
    world.heap.inner_mut().unadvise_span(range, Advice::Huge);
    assert_eq!(world.sim.calls().advise, before);
}

#[test]
fn hugepages_that_a_span_covers_in_part_are_left_alone() {
    let mut world = world(HugeBacking::NEVER);
    let (_, huge) = advised(&mut world, Pages(HUGE.0 + 100), Advice::Huge);
    assert_eq!(huge, HugePages(1));
}
