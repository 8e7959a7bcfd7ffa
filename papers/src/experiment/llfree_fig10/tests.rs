use super::*;

fn state(turn: usize, free_huge: usize, cost_frames: usize) -> State {
    State { turn, free_huge, possible_huge: 110, cost_frames, pinned_huge: 3, ns_per_put: 10.0, ns_per_get: 30.0 }
}

#[test]
fn recovered_are_those_that_were_not_free_at_first_and_ratios_are_of_the_end() {
    let ours = of_states(Course::Plain, OURS, Ok(vec![state(0, 10, 400), state(1, 60, 100)]));
    assert!((ours[1].num("recovered") - 0.5).abs() < 1e-9 && (ours[1].num("cost") - 0.25).abs() < 1e-9);
    let buddy = of_states(Course::Plain, "buddy", Ok(vec![state(0, 10, 400), state(1, 10, 400)]));
    let failed = of_states(Course::Mixed, "buddy", Err("full".to_owned()));
    let ratios = ratios(&[ours, buddy, failed].concat());
    assert_eq!(ratios["plain_cost_vs_buddy"], 0.25);
    assert_eq!((ratios["plain_unrecovered_vs_buddy"], ratios["plain_time_vs_buddy"]), (0.5, 1.0));
    assert!(ratios.len() == 4 && ratios.keys().all(|name| name.starts_with("plain")));
}
