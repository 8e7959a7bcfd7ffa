use super::*;
use crate::experiment::tool::parse;
use std::path::PathBuf;

fn row(allocator: &str, from: &'static str, what: &str, ns_median: f64) -> Row {
    json!({ "allocator": allocator, "from": from, "what": what, "batch": 1, "ns_median": ns_median, "status": "ok" })
}

#[test]
fn ratios_are_means_over_what_both_have() {
    let rows = [
        row("craton", "cache", "8", 2.0),
        row("craton", "cache", "64", 4.0),
        row("craton", "cache", "512", 9.0),
        row("glibc", "malloc", "8", 8.0),
        row("glibc", "malloc", "64", 4.0),
    ];
    assert_eq!(ratio(&rows, ("craton", "cache"), ("glibc", "malloc")), Some(0.5));
    assert_eq!(ratio(&rows, ("craton", "cache"), ("x", "malloc")), None);
    let table = table(&rows);
    assert!(table.contains("craton cache") && table.contains("glibc") && table.lines().count() == 4, "{table}");
}

#[test]
fn who_did_not_serve_has_no_figure() {
    let line = "{\"ns_median\":1.0,\"ns_min\":1.0,\"malloc_from\":\"/lib/libc.so.6\"}";
    assert!(parse::<Measurement>(line, None).is_ok());
    let why = parse::<Measurement>(line, Some(&PathBuf::from("/x/libx.so"))).unwrap_err();
    assert!(why.starts_with(NOT_SERVED) && why.contains("/lib/libc.so.6"), "{why}");
    assert!(parse::<Measurement>("Segmentation fault", None).unwrap_err().contains("Segmentation fault"));
}
