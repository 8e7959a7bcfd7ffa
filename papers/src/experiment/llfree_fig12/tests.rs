use super::*;

#[test]
fn rounds_of_the_write_benchmark_become_instructions_for_a_page() {
    let line = |allocator: &str, round: u64, populate: u64| {
        json!({"allocator": allocator, "step": "write", "round": round, "cpus": 2, "order": 9, "blocks": 10,
            "populate": populate, "free": 1000})
    };
    let lines = [
        json!({"step": "counters"}),
        line("buddy", 0, 4000),
        line("buddy", 1, 6000),
        line("buddy", 2, 5000),
        line("craton", 0, 2500),
    ];
    let rows = rows(&lines);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].num("populate"), rows[1].num("populate"), rows[1].num("free")), (500.0, 250.0, 100.0));
    let ratios = ratios(&rows);
    assert!((ratios["populate_order9_instructions_vs_buddy"] - 0.5).abs() < 1e-9, "{ratios:?}");
    let bars: Vec<(String, f64)> =
        bars(&rows).iter().map(|bar| (bar.word("place").to_owned(), bar.num("ratio"))).collect();
    assert_eq!(bars[..2], [("populate, order 9".to_owned(), 1.0), ("populate, order 9".to_owned(), 0.5)]);
    assert!(!ratios.contains_key("free_order0_instructions_vs_buddy"));
}
