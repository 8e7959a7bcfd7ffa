use super::*;

fn run(ns: f64) -> Result<Row, String> {
    Ok(json!({ "ns_per_op": ns, "peak_bytes": 10 }))
}

#[test]
fn a_row_has_the_median_of_its_rounds_and_what_failed() {
    let cell = Cell::new(Load::Shbench, Kind::CratonLog, Mode::Flush, 100).with("morph", 0, ", static");
    let row = super::row(&cell, &[run(3.0), Err("no room".to_owned()), run(1.0), run(2.0)]).expect("rounds");
    assert!(row.num("ns_per_op") == 2.0 && row.num("ns_per_op_min") == 1.0 && row.num("ns_per_op_max") == 3.0);
    assert!(row.word("allocator") == "craton-log, static" && row.word("workload") == "shbench");
    assert!(row.int("rounds") == 3 && row.word("status") == "failed: no room");
    // A median is a fraction, of bytes too.
    assert!(table(&[("space", "peak_bytes", Show::Bytes)], [&row]).contains("10 B"));
    assert!(super::row(&cell, &[]).is_none());
}

#[test]
fn modelled_time_is_that_without_flushes_and_that_of_the_flushes() {
    let one = |mode: Mode, figure: &str, value: f64| {
        let mut row = super::row(&Cell::new(Load::Shbench, Kind::Pmdk, mode, 100), &[run(5.0)]).expect("a round");
        row[figure] = value.into();
        row
    };
    let mut rows = vec![one(Mode::None, "ns_per_op", 20.0), one(Mode::Counted, "modelled_ns_per_op", 300.0)];
    modelled(&mut rows);
    assert_eq!(rows.len(), 3);
    assert!(rows[2].word("mode") == "modelled" && rows[2].num("ns_per_op") == 320.0 && rows[2]["peak_bytes"].is_null());
}

#[test]
fn ratios_are_of_the_same_load_mode_and_threads() {
    let one =
        |heap, mode, ns: f64| super::row(&Cell::new(Load::Shbench, heap, mode, 100), &[run(ns)]).expect("a round");
    let rows = [
        one(Kind::CratonLog, Mode::Flush, 100.0),
        one(Kind::Pmdk, Mode::Flush, 400.0),
        one(Kind::Nvalloc, Mode::Flush, 200.0),
        one(Kind::CratonLog, Mode::None, 9.0),
    ];
    let ratios = ratios(&rows, "ns_per_op", "time");
    let names: Vec<&str> = ratios.keys().map(String::as_str).collect();
    let of = |load: &str, other: &str| format!("{load}_flush_craton-log_vs_{other}");
    let all = ["shbench", "time"].map(|load| ["nvalloc", "pmdk"].map(|other| of(load, other)));
    assert_eq!(names, all.as_flattened());
    assert!((ratios["time_flush_craton-log_vs_pmdk"] - 0.25).abs() < 1e-9);
    assert!((ratios["time_flush_craton-log_vs_nvalloc"] - 0.5).abs() < 1e-9);
}
