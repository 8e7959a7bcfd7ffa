use super::*;

fn row(allocator: &'static str, workload: &'static str, ns: [Option<f64>; 3]) -> TimeRow {
    let [ns_per_get, ns_per_put, ns_per_pair] = ns;
    TimeRow {
        workload,
        allocator,
        order: 0,
        threads: 1,
        memory_bytes: 0,
        blocks: 1,
        rounds: 1,
        ns_per_get,
        ns_per_get_min: ns_per_get,
        ns_per_put,
        ns_per_put_min: ns_per_put,
        ns_per_pair,
        ns_per_pair_min: ns_per_pair,
        status: "ok".to_owned(),
    }
}

#[test]
fn ratios_are_of_the_same_loop_and_below_one_where_craton_is_faster() {
    let rows = [
        row(OURS, "bulk", [Some(10.0), Some(5.0), None]),
        row("buddy", "bulk", [Some(40.0), Some(5.0), None]),
        row("buddy", "repeat", [None, None, Some(1.0)]),
    ];
    let ratios = ratios(&rows);
    assert_eq!(
        ratios.keys().map(String::as_str).collect::<Vec<_>>(),
        ["bulk_get_vs_buddy", "bulk_put_vs_buddy", "time_vs_buddy"]
    );
    assert!((ratios["bulk_get_vs_buddy"] - 0.25).abs() < 1e-9 && (ratios["time_vs_buddy"] - 0.5).abs() < 1e-9);
}

#[test]
fn a_row_has_the_median_and_the_least_of_its_rounds_and_says_what_failed() {
    let times = |ns| Ok(vec![Times { of: Loop::Repeat, ns_per_get: None, ns_per_put: None, ns_per_pair: Some(ns) }]);
    let job = Loops { of: &[], order: 3, threads: 2, blocks: 1, pairs: 1 };
    let found = [times(3.0), Err("no room".to_owned()), times(1.0), times(2.0)];
    let row = super::row(Design::Buddy, &job, Loop::Repeat, 4, &found).expect("rounds");
    assert_eq!((row.ns_per_pair, row.ns_per_pair_min, row.ns_per_get), (Some(2.0), Some(1.0), None));
    assert!(row.rounds == 3 && row.status == "failed: no room" && row.memory_bytes == 4 << 30);
}
