use super::*;
use crate::{Call, FaultPlan, FaultRule, SimFloor, ThpMode, VirtualClock};
use craton_base::{
    Advice, Ask, Clock, CollapseError, Floor, HugePageId, HugePages, PageBits, PageId, PageRange, Pages,
};

fn range(first: u32, len: u32) -> PageRange {
    PageRange::new(PageId(first), Pages(len))
}

/// Advised huge.
fn floor(free: u32) -> SimFloor {
    let mut floor = SimFloor::new(HugePages(4), ThpMode::Madvise);
    floor.reserve(HugePages(4)).unwrap();
    floor.advise(range(0, 1024), Advice::Huge);
    floor.set_free_frames(Some(free));
    floor
}

fn huge(floor: &SimFloor) -> [bool; 4] {
    floor.check().unwrap();
    [0, 1, 2, 3].map(|id| floor.is_huge(HugePageId(id)))
}

#[test]
fn faults_take_small_pages_once_the_frames_are_used_up() {
    let mut floor = floor(2);
    (0..4).for_each(|id| floor.touch(range(id * 256 + 5, 3)));
    assert_eq!(huge(&floor), [true, true, false, false]);
    assert_eq!((floor.free_frames(), floor.calls().fallbacks), (Some(0), 2));
    assert_eq!(floor.residency(range(512, 512), Ask::Both).resident_bytes, Pages(6).bytes().0);
    assert_eq!(floor.collapse(range(512, 256)), Err(CollapseError::NoMemory));
    floor.unback(range(0, 256)).unwrap();
    floor.collapse(range(512, 256)).unwrap();
    assert_eq!((huge(&floor), floor.free_frames()), ([false, true, true, false], Some(0)));
}

#[test]
fn a_collapse_of_several_takes_all_frames_or_none() {
    let mut floor = floor(0);
    floor.touch(range(0, 1024));
    floor.set_free_frames(Some(3));
    assert_eq!(floor.collapse(range(0, 1024)), Err(CollapseError::NoMemory));
    assert_eq!((huge(&floor), floor.free_frames()), ([false; 4], Some(3)));
    floor.collapse(range(256, 768)).unwrap();
    assert_eq!((huge(&floor), floor.free_frames()), ([false, true, true, true], Some(0)));
}

#[test]
fn a_split_hugepage_keeps_its_frame_until_its_last_page_leaves() {
    let mut floor = floor(1);
    floor.touch(range(0, 1));
    floor.unback(range(0, 255)).unwrap();
    floor.touch(range(0, 9));
    assert_eq!((huge(&floor)[0], floor.free_frames()), (false, Some(0)));
    floor.unback(range(255, 1)).unwrap();
    assert_eq!((floor.free_frames(), floor.backed_bytes()), (Some(1), Pages(9).bytes()));
    floor.collapse(range(0, 256)).unwrap();
    assert_eq!((huge(&floor)[0], floor.free_frames()), (true, Some(0)));
}

#[test]
fn requests_fail_as_often_as_is_set_and_alike_for_a_seed() {
    let fallbacks = |percent, seed| {
        let mut floor = floor(100);
        floor.set_failing_frames(percent, seed);
        let mut came = Vec::new();
        for _ in 0..200 {
            floor.touch(range(0, 1));
            came.push(floor.is_huge(HugePageId(0)));
            floor.unback(range(0, 256)).unwrap();
        }
        assert_eq!(floor.free_frames(), Some(100));
        came
    };
    let count = |came: &[bool]| came.iter().filter(|huge| **huge).count();
    assert_eq!((count(&fallbacks(0, 1)), count(&fallbacks(100, 1))), (200, 0));
    assert!((80..160).contains(&count(&fallbacks(40, 1))), "{}", count(&fallbacks(40, 1)));
    assert_eq!(fallbacks(40, 1), fallbacks(40, 1));
    assert_ne!(fallbacks(40, 1), fallbacks(40, 2));
}

#[test]
fn a_write_after_a_fork_copies_a_page_and_splits_its_hugepage() {
    let mut floor = floor(3);
    floor.touch(range(0, 768));
    floor.fork();
    assert!(floor.is_forked());
    floor.touch(range(7, 2));
    floor.touch(range(7, 1));
    assert_eq!((huge(&floor), floor.calls().copies), ([false, true, true, false], 2));
    assert_eq!((floor.calls().splits, floor.backed_bytes()), (1, Pages(768).bytes()));
    assert_eq!(floor.collapse(range(0, 256)), Err(CollapseError::Busy));
    floor.set_free_frames(Some(1));
    floor.touch(range(768, 256));
    assert!(huge(&floor)[3]);
    floor.end_child();
    floor.set_free_frames(Some(1));
    floor.touch(range(300, 1));
    floor.collapse(range(0, 256)).unwrap();
    assert_eq!((huge(&floor), floor.free_frames()), ([true; 4], Some(1)), "the old frame is free");
}

#[test]
fn a_child_keeps_the_frames_that_its_parent_leaves() {
    let mut floor = floor(2);
    floor.touch(range(0, 512));
    floor.fork();
    floor.unback(range(0, 256)).unwrap();
    floor.touch(range(256, 256));
    assert_eq!((floor.free_frames(), floor.backed_bytes()), (Some(0), Pages(256).bytes()));
    floor.end_child();
    assert_eq!((floor.free_frames(), huge(&floor)), (Some(2), [false; 4]));
    floor.collapse(range(256, 256)).unwrap();
    assert_eq!(floor.free_frames(), Some(1));
}

#[test]
fn refused_advice_changes_nothing_and_the_other_one_goes_through() {
    for (refused, advice, other) in
        [(Call::AdviseHuge, Advice::Huge, Advice::Small), (Call::AdviseSmall, Advice::Small, Advice::Huge)]
    {
        let plan = FaultPlan::default();
        let mut floor = <SimFloor>::with_faults(HugePages(1), ThpMode::Madvise, plan.clone());
        floor.reserve(HugePages(1)).unwrap();
        plan.set_only(refused, FaultRule::Every(1));
        assert!(floor.advise(range(0, 256), other));
        assert!(!floor.advise(range(0, 256), advice));
        assert_eq!((floor.advice(HugePageId(0)), floor.calls().refused), (Some(other), 1));
        plan.set(FaultRule::Every(1));
        assert!(floor.advise(range(0, 256), advice), "only a plan for it refuses advice");
        assert_eq!(plan.calls(), 0);
    }
}

#[test]
fn collapses_take_time_by_the_clock() {
    let (mut floor, clock) = (floor(4), VirtualClock::new(0));
    floor.set_collapse_cost(clock.clone(), 500);
    floor.set_thp(ThpMode::Never);
    floor.touch(range(0, 1));
    floor.collapse(range(0, 256)).unwrap();
    assert_eq!(floor.collapse(range(256, 256)), Err(CollapseError::Unsupported));
    assert_eq!(clock.now_ns(), 1000);
}

#[test]
fn backed_pages_outside_of_a_set_are_counted_where_the_set_ends_too() {
    let floor = floor(1);
    floor.touch(range(0, 1));
    floor.touch(range(256, 10));
    let mut used = PageBits::EMPTY;
    used.insert(0, 100);
    assert_eq!(floor.backed_beyond(&[used]), Pages(156 + 10));
    assert_eq!(floor.backed_beyond(&[used, used]), Pages(156));
}

#[test]
fn frames_are_neither_lost_nor_made_on_a_random_walk() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut floor = floor(3);
        floor.set_failing_frames(10, seed);
        for _ in 0..400 {
            let first = rng.below(1024);
            let some = range(first as u32, rng.in_range(0..1025 - first) as u32);
            match rng.below(8) {
                0..3 => floor.touch(some),
                3 | 4 => floor.unback(some).unwrap(),
                5 => {
                    let _ = floor.collapse(some.first.hugepage().range());
                }
                6 if floor.is_forked() => floor.end_child(),
                _ if floor.is_forked() => floor.touch(some),
                _ => floor.fork(),
            }
            floor.check().unwrap();
        }
        if floor.is_forked() {
            floor.end_child();
        }
        floor.unback(range(0, 1024)).unwrap();
        assert_eq!(floor.free_frames(), Some(3), "seed {seed}");
    }
}
