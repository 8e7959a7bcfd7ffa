use super::*;

#[test]
fn rounds_of_a_benchmark_become_one_row_with_median_and_least() {
    let line = |allocator: &str, round: u64, get: u64| json!({"step": "bench", "name": "bulk", "allocator": allocator, "order": 9, "cpus": 2, "round": round, "get_ps": get, "put_ps": 1000});
    let lines = [
        json!({"step": "memory", "frames": 1}),
        line("buddy", 0, 4000),
        line("craton", 0, 2000),
        line("buddy", 1, 8000),
        line("craton", 1, 1000),
        line("buddy", 2, 5000),
        line("craton", 2, 3000),
    ];
    let rows = rows(&lines);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].num("ns_per_get"), rows[0].num("ns_per_get_min")), (5.0, 4.0));
    assert_eq!((rows[1].num("ns_per_get"), rows[1].num("ns_per_put")), (2.0, 1.0));
    assert!(rows[0]["ns_per_pair"].is_null() && is_ours(&rows[1]));
    let ratios = ratios(&rows, Unit::Time);
    assert!((ratios["bulk_get_time_vs_buddy"] - 0.4).abs() < 1e-9, "{ratios:?}");
}

#[test]
fn a_lock_limits_what_more_cpus_bring() {
    let row = |allocator: &str, cpus: u64, locked: f64| {
        turn_row(&json!({"step": "lines", "name": "bulk", "call": "get", "allocator": allocator, "order": 0,
            "cpus": cpus, "instructions": if locked > 0.0 { 600.0 } else { 120.0 }, "locked": locked, "moved": 1.0}))
    };
    let rows = [row(BUDDY, 1, 200.0), row(OURS, 1, 0.0), row(BUDDY, 8, 200.0), row(OURS, 8, 0.0)];
    assert_eq!(rows.clone().map(|row| row.num("least")), [600.0, 120.0, 200.0, 15.0]);
    let ratios = turn_ratios(&rows);
    assert_eq!(ratios.len(), 2);
    assert!((ratios["bulk_get_order0_cpus1_least_vs_buddy"] - 0.2).abs() < 1e-9, "{ratios:?}");
    assert!((ratios["bulk_get_order0_cpus8_least_vs_buddy"] - 0.075).abs() < 1e-9, "{ratios:?}");
}
