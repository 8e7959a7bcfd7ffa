use super::*;

const SECOND: u64 = EPOCH_NS;

#[test]
fn in_the_first_minute_all_may_be_wanted() {
    let mut demand = Demand::NONE;
    assert_eq!(demand.wanted(0), u32::MAX);
    demand.fold(10, 0);
    assert_eq!(demand.wanted((SHORT_S - 1) * SECOND), u32::MAX);
    assert_ne!(demand.wanted(SHORT_S * SECOND), u32::MAX);
}

#[test]
fn the_level_and_one_swing_are_wanted_but_no_more_than_the_peak() {
    let mut demand = Demand::NONE;
    for second in 0..400 {
        let swing = second % 100 == 99;
        demand.note(if swing { 130 } else { 100 });
        demand.fold(100, second * SECOND);
    }
    assert_eq!(demand.wanted(400 * SECOND), 130, "a swing in the last minute");
    assert_eq!(demand.wanted((399 + SHORT_S) * SECOND), 100, "and none");
    assert_eq!(demand.wanted((399 + LONG_S) * SECOND), 0, "forgotten");
}
