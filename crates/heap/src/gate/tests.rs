use super::*;

#[test]
fn without_limits_nothing_is_outside() {
    let gate = Gate::open();
    assert!(!gate.watches() && !gate.is_outside(0) && !gate.is_outside(u64::MAX - 1));
    assert_eq!((gate.soft(), gate.hard(), gate.tightest(), gate.target()), (None, None, None, u64::MAX));
}

#[test]
fn the_soft_limit_itself_may_be_used() {
    let gate = Gate::open();
    gate.set(Some(1 << 30), Some(1 << 31));
    assert!(gate.watches() && !gate.is_outside(1 << 30) && gate.is_outside((1 << 30) + 1));
    assert_eq!(gate.tightest(), Some(1 << 30));
    assert!(gate.target() < 1 << 30);
    gate.set(None, Some(1 << 20));
    assert!(!gate.watches());
    assert_eq!(gate.tightest(), Some(1 << 20));
    gate.set(Some(u64::MAX), None);
    assert!(!gate.is_outside(u64::MAX - 1));
}

#[test]
fn a_heap_that_stays_above_is_looked_at_again_after_a_step_or_below_the_limit() {
    let gate = Gate::open();
    gate.set(Some(1 << 30), None);
    let used = (1 << 30) + 5;
    gate.rearm_above(used);
    let step = (1 << 30) / STEP_PART;
    assert!(!gate.is_outside(used) && !gate.is_outside(used + step - 1) && gate.is_outside(used + step));
    assert!(!gate.is_outside(1 << 30) && gate.is_outside((1 << 30) - 1));
    gate.rearm();
    assert!(!gate.is_outside(0) && gate.is_outside(used));
}
