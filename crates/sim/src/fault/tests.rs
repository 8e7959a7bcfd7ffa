use super::*;

fn refused(plan: &FaultPlan, calls: u32) -> Vec<u64> {
    for _ in 0..calls {
        let _ = plan.refuses(Call::Back);
    }
    assert_eq!((plan.calls(), plan.refused()), (calls.into(), plan.record().len() as u64));
    plan.record().iter().map(|r| r.number).collect()
}

#[test]
fn each_rule_refuses_the_calls_it_names() {
    assert_eq!(refused(&FaultPlan::default(), 5), []);
    assert_eq!(refused(&FaultPlan::new(FaultRule::Nth(3)), 5), [3]);
    assert_eq!(refused(&FaultPlan::new(FaultRule::Every(2)), 5), [2, 4]);
    assert_eq!(refused(&FaultPlan::new(FaultRule::From(3)), 5), [3, 4, 5]);
}

#[test]
fn setting_a_rule_starts_anew_in_every_clone() {
    let plan = FaultPlan::new(FaultRule::From(1));
    let clone = plan.clone();
    assert!(clone.refuses(Call::Alloc));
    assert_eq!(plan.record(), [Refusal { number: 1, call: Call::Alloc }]);
    plan.set(FaultRule::Nth(2));
    assert_eq!((clone.calls(), clone.refused()), (0, 0));
    assert!(!clone.refuses(Call::Alloc) && clone.refuses(Call::Reserve));
}

#[test]
fn a_rule_for_one_kind_of_call_does_not_see_the_others() {
    let plan = FaultPlan::default();
    plan.set_only(Call::Unback, FaultRule::Nth(2));
    assert!(!plan.refuses(Call::Reserve) && !plan.refuses(Call::Unback) && !plan.refuses(Call::Reserve));
    assert!(plan.refuses(Call::Unback));
    assert_eq!(plan.calls(), 2);
}

#[test]
#[should_panic(expected = "Every(0)")]
fn a_period_of_zero_is_a_mistake() {
    let _ = FaultPlan::new(FaultRule::Every(0));
}
