use super::*;

fn row(allocator: &str, workload: &str, [get, put, pair]: [Option<f64>; 3]) -> Row {
    let (order, threads) = (0, 1);
    json!({
        "workload": workload, "allocator": allocator, "order": order, "threads": threads,
        "ns_per_get": get, "ns_per_put": put, "ns_per_pair": pair, "status": "ok",
    })
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
    assert!(row.num("ns_per_pair") == 2.0 && row.num("ns_per_pair_min") == 1.0 && row["ns_per_get"].is_null());
    assert!(row.int("rounds") == 3 && row.word("status") == "failed: no room" && row.int("memory_bytes") == 4 << 30);
}
