use super::*;
use crate::FaultRule;
use crate::rng::Rng;
use craton_base::PageId;

fn range(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

fn floor(thp: ThpMode, granted: u32) -> SimFloor {
    let mut floor = SimFloor::new(HugePages(8), thp);
    floor.reserve(HugePages(granted)).unwrap();
    floor
}

fn advised(thp: ThpMode, granted: u32) -> SimFloor {
    let mut floor = floor(thp, granted);
    floor.advise(HugePageId(0).run(HugePages(granted)), Advice::Huge);
    floor
}

fn backed_pages(floor: &SimFloor) -> usize {
    floor.check().unwrap();
    floor.backed_bytes().0 / Pages(1).bytes().0
}

#[test]
fn first_touch_backs_a_whole_hugepage_only_where_mode_and_advice_allow() {
    for (thp, advice, huge) in [
        (ThpMode::Always, None, false),
        (ThpMode::Always, Some(Advice::Huge), true),
        (ThpMode::Always, Some(Advice::Small), false),
        (ThpMode::Madvise, None, false),
        (ThpMode::Madvise, Some(Advice::Huge), true),
        (ThpMode::Madvise, Some(Advice::Small), false),
        (ThpMode::Never, Some(Advice::Huge), false),
    ] {
        let mut floor = floor(thp, 2);
        if let Some(advice) = advice {
            floor.advise(range(0, 512), advice);
        }
        floor.touch(range(300, 3));
        assert_eq!(backed_pages(&floor), if huge { 256 } else { 3 }, "{thp:?} {advice:?}");
        assert_eq!((floor.is_huge(HugePageId(1)), floor.is_huge(HugePageId(0))), (huge, false));
        assert_eq!(floor.written(range(0, 512)), Pages(3));
        assert_eq!((floor.calls().huge_faults, floor.calls().small_faults), if huge { (1, 0) } else { (0, 3) });
    }
}

#[test]
fn a_hugepage_advised_only_in_part_is_not_given_huge() {
    let mut floor = floor(ThpMode::Madvise, 1);
    floor.advise(range(0, 255), Advice::Huge);
    floor.touch(range(0, 1));
    assert_eq!((backed_pages(&floor), floor.advice(HugePageId(0))), (1, None));
    floor.advise(range(255, 1), Advice::Huge);
    assert_eq!(floor.advice(HugePageId(0)), Some(Advice::Huge));
    floor.advise(range(0, 256), Advice::Small);
    assert_eq!(floor.advice(HugePageId(0)), Some(Advice::Small));
}

#[test]
fn a_partly_backed_hugepage_grows_by_small_pages_whatever_the_advice() {
    let mut floor = floor(ThpMode::Madvise, 1);
    floor.touch(range(7, 1));
    floor.advise(range(0, 256), Advice::Huge);
    floor.touch(range(6, 4));
    assert_eq!((backed_pages(&floor), floor.huge_bytes()), (4, Bytes(0)));
}

#[test]
fn unbacking_a_part_splits_and_unbacking_all_does_not_count_as_a_split() {
    let mut floor = advised(ThpMode::Always, 3);
    floor.touch(range(0, 768));
    assert_eq!(floor.huge_bytes(), HugePages(3).bytes());
    floor.unback(range(100, 256)).unwrap();
    assert_eq!((floor.calls().splits, floor.huge_bytes()), (2, HugePages(1).bytes()));
    assert_eq!((backed_pages(&floor), floor.written(range(0, 768))), (512, Pages(512)));
    floor.unback(range(512, 256)).unwrap();
    assert_eq!((floor.calls().splits, floor.calls().pages_unbacked), (2, 512));
    assert_eq!(floor.residency(range(0, 768), Ask::Both).resident_bytes, Pages(256).bytes().0);
    floor.touch(range(600, 1));
    assert!(floor.is_huge(HugePageId(2)));
    assert_eq!(floor.written(range(512, 256)), Pages(1));
}

#[test]
fn collapse_needs_advice_and_one_resident_page_in_each_hugepage() {
    let mut floor = floor(ThpMode::Never, 2);
    floor.touch(range(3, 1));
    assert_eq!(floor.collapse(range(0, 256)), Err(CollapseError::Unsupported));
    assert!(!floor.advise(range(0, 512), Advice::Huge), "the mode is never, and that is told");
    assert_eq!(floor.collapse(range(0, 512)), Err(CollapseError::Unsupported));
    assert_eq!(backed_pages(&floor), 1);
    floor.collapse(range(0, 256)).unwrap();
    assert_eq!((backed_pages(&floor), floor.huge_bytes()), (256, HugePages(1).bytes()));
    assert_eq!((floor.written(range(0, 256)), floor.calls().pages_collapsed), (Pages(1), 255));
    floor.collapse(range(0, 256)).unwrap();
    assert_eq!((backed_pages(&floor), floor.calls().pages_collapsed), (256, 255));
}

#[test]
fn backing_gives_memory_without_writing() {
    let mut floor = floor(ThpMode::Never, 1);
    floor.back(range(10, 20)).unwrap();
    assert_eq!((backed_pages(&floor), floor.written(range(0, 256))), (20, Pages(0)));
}

#[test]
fn the_region_ends_at_its_capacity() {
    let mut floor = floor(ThpMode::Always, 2);
    assert_eq!(floor.reserve(HugePages(9)), Err(NoMemory));
    assert_eq!(floor.granted(), HugePages(2));
    floor.reserve(HugePages(2)).unwrap();
    floor.reserve(HugePages(8)).unwrap();
}

#[test]
fn after_a_refusal_the_state_is_as_before() {
    let plan = FaultPlan::default();
    let mut floor = <SimFloor>::with_faults(HugePages(8), ThpMode::Always, plan.clone());
    floor.reserve(HugePages(2)).unwrap();
    floor.advise(range(0, 512), Advice::Huge);
    floor.set_collapse_error(CollapseError::Busy);
    floor.touch(range(0, 1));
    let before = (floor.granted(), floor.backed_bytes(), floor.huge_bytes(), floor.written(range(0, 512)));
    plan.set(FaultRule::From(1));
    assert!(floor.reserve(HugePages(3)).is_err() && floor.back(range(256, 1)).is_err());
    assert_eq!((floor.unback(range(0, 1)), floor.collapse(range(0, 256))), (Err(NoMemory), Err(CollapseError::Busy)));
    assert_eq!((floor.granted(), floor.backed_bytes(), floor.huge_bytes(), floor.written(range(0, 512))), before);
    assert_eq!((floor.calls().refused, plan.refused()), (4, 4));
    plan.set(FaultRule::Never);
    floor.unback(range(0, 1)).unwrap();
}

#[test]
fn z1_to_z4_hold_on_a_random_walk() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut floor = floor(*rng.pick(&[ThpMode::Always, ThpMode::Madvise, ThpMode::Never]), 4);
        for _ in 0..300 {
            let first = rng.below(1024);
            let some = range(first as u32, rng.in_range(0..1025 - first) as u32);
            match rng.below(6) {
                0 | 1 => floor.touch(some),
                2 => floor.unback(some).unwrap(),
                3 => {
                    floor.advise(some, *rng.pick(&[Advice::Huge, Advice::Small]));
                }
                4 => floor.back(some).unwrap(),
                _ => {
                    let _ = floor.collapse(some.first.hugepage().range());
                }
            }
            floor.check().unwrap();
        }
    }
}

#[test]
#[should_panic(expected = "unback: pages 500..513 reach beyond the 512 pages (2 hugepages) that reserve granted")]
fn a_range_beyond_the_grant_is_named() {
    let _ = floor(ThpMode::Always, 2).unback(range(500, 13));
}

#[test]
#[should_panic(expected = "the grant of 2 hugepages cannot shrink to 1")]
fn a_grant_never_shrinks() {
    let _ = floor(ThpMode::Always, 2).reserve(HugePages(1));
}

#[test]
#[should_panic(expected = "not whole hugepages")]
fn only_whole_hugepages_collapse() {
    let _ = floor(ThpMode::Always, 2).collapse(range(0, 255));
}
