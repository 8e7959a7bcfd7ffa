use super::*;
use crate::{BumpSpans, FaultPlan, FaultRule, Faulty, SimFloor, ThpMode};
use craton_base::HugePageId;

#[test]
fn floor_calls_and_pages_are_counted_and_refusals_move_none() {
    let plan = FaultPlan::default();
    let mut floor = Counted::new(Faulty::new(SimFloor::new(HugePages(4), ThpMode::Always), plan.clone()));
    let range = HugePageId(1).range();
    floor.reserve(HugePages(4)).unwrap();
    floor.advise(range, Advice::Huge);
    floor.back(range).unwrap();
    floor.collapse(range).unwrap();
    plan.set(FaultRule::Nth(1));
    floor.unback(range).unwrap_err();
    floor.unback(range).unwrap();
    assert_eq!(floor.residency(range, Ask::Both).resident_bytes, 0);
    let want = Counts {
        reserve: 1,
        back: 1,
        unback: 2,
        collapse: 1,
        advise: 1,
        refused: 1,
        pages_moved: 768,
        ..Counts::default()
    };
    assert_eq!(floor.counts(), want);
}

#[test]
fn pages_out_follow_alloc_resize_and_free() {
    let mut spans = Counted::new(BumpSpans::new(Pages(16)));
    let mut span = spans.alloc(Pages(4), Pages(4), Density::Sparse).unwrap().range;
    spans.alloc(Pages(17), Pages(1), Density::Dense).unwrap_err();
    spans.resize(span, Pages(6)).unwrap();
    span.len = Pages(6);
    assert_eq!(spans.counts().pages_out, 6);
    spans.free(span, Density::Sparse).unwrap();
    assert_eq!(spans.counts(), Counts { alloc: 2, free: 1, resize: 1, refused: 1, ..Counts::default() });
}
