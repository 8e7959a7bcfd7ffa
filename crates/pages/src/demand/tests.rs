use super::*;

const SECOND: u64 = EPOCH_NS;

#[test]
fn the_highest_demand_of_the_window_is_wanted_and_then_forgotten() {
    let mut demand = Demand::NONE;
    assert_eq!(demand.wanted(0), 0, "none yet");
    demand.record(130);
    demand.record(100);
    demand.fold(100, 7 * SECOND);
    (8..7 + DEMAND_S).for_each(|second| {
        demand.fold(100, second * SECOND);
        assert_eq!(demand.wanted(second * SECOND), 130, "second {second}");
    });
    assert_eq!(demand.wanted((7 + DEMAND_S) * SECOND), 100, "the peak is past");
    assert_eq!(demand.wanted((6 + 2 * DEMAND_S) * SECOND), 0, "all is");
}

#[test]
fn a_peak_between_two_looks_counts_from_the_second_one() {
    let mut demand = Demand::NONE;
    demand.fold(10, 0);
    demand.record(500);
    demand.fold(10, 1000 * SECOND);
    assert_eq!(demand.wanted((999 + DEMAND_S) * SECOND), 500);
    assert_eq!(demand.wanted((1000 + DEMAND_S) * SECOND), 0);
}

#[test]
fn demand_that_swings_within_the_window_is_wanted_all_the_time() {
    let mut demand = Demand::NONE;
    for second in 0..100 {
        demand.record(if second % DEMAND_S == 0 { 450 } else { 50 });
        demand.fold(50, second * SECOND);
        assert_eq!(demand.wanted(second * SECOND), 450);
    }
}
