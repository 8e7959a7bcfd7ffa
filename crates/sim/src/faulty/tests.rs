use super::*;
use crate::{BumpSpans, FaultRule, SimFloor, ThpMode};
use craton_base::HugePageId;

#[test]
fn a_refused_floor_call_does_not_arrive() {
    let plan = FaultPlan::default();
    let sim = SimFloor::new(HugePages(4), ThpMode::Always);
    let mut floor = Faulty::new(sim.clone(), plan.clone());
    floor.reserve(HugePages(2)).unwrap();
    sim.touch(HugePageId(0).range());
    let before = (sim.calls(), sim.granted());
    plan.set(FaultRule::From(1));
    let range = HugePageId(0).range();
    assert_eq!(floor.reserve(HugePages(3)), Err(NoMemory));
    assert_eq!(floor.back(range), Err(NoMemory));
    assert_eq!(floor.unback(range), Err(NoMemory));
    assert_eq!(floor.collapse(range), Err(CollapseError::NoMemory));
    assert_eq!((sim.calls(), sim.granted()), before);
    assert_eq!(floor.residency(range, Ask::Both), sim.residency(range, Ask::Both));
    assert_eq!(
        plan.record().iter().map(|r| r.call).collect::<Vec<_>>(),
        [Call::Reserve, Call::Back, Call::Unback, Call::Collapse]
    );
}

#[test]
fn spans_are_refused_on_alloc_and_resize_never_on_free() {
    let plan = FaultPlan::default();
    let mut spans = Faulty::new(BumpSpans::new(Pages(8)), plan.clone());
    let span = spans.alloc(Pages(2), Pages(1), Density::Sparse).unwrap().range;
    plan.set(FaultRule::From(1));
    assert_eq!(spans.alloc(Pages(1), Pages(1), Density::Sparse), Err(SpanError::NoMemory));
    assert_eq!(spans.resize(span, Pages(3)), Err(SpanError::NoMemory));
    assert_eq!(spans.inner().live(), Pages(2));
    spans.free(span, Density::Sparse).unwrap();
    assert_eq!((spans.inner().live(), plan.calls()), (Pages(0), 2));
}
