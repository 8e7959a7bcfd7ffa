use super::*;

#[test]
fn a_demand_that_returns_is_kept_and_one_that_does_not_is_given_back() {
    let rows = play(QUICK_BYTES).expect("room");
    let calls = |time_s| at(&rows, time_s).expect("inside").int("system_calls");
    assert!(calls(1.5) > 0);
    assert_eq!(calls(9.9), calls(4.0), "a swing that is known costs no call");
    let low = at(&rows, 1.05).expect("inside");
    assert!(low.int("backed_bytes") < low.int("demand_bytes") + (64 << 20), "the first fall is followed at once");
    let swinging = at(&rows, 8.05).expect("inside");
    assert!(swinging.int("backed_bytes") > 3 * swinging.int("demand_bytes"), "later ones are not");
    let after = at(&rows, 14.0).expect("inside");
    assert!(after.int("backed_bytes") <= after.int("demand_bytes") + (32 << 20), "what does not come back goes");
    assert!(rows.iter().all(|row| row.int("backed_bytes") >= row.int("demand_bytes")));
}
