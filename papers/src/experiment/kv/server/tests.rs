use super::*;

#[test]
fn the_figure_of_a_benchmark_is_read_and_a_missing_one_named() {
    let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"172413.80\",\"0.151\"\n";
    assert_eq!(per_second(csv), Ok(172_413.8));
    assert!(per_second("Could not connect\n").is_err_and(|why| why.contains("Could not connect")));
}

#[test]
fn a_missing_program_is_named() {
    let why = Programs::find(&|name| Err(format!("no {name}"))).err().unwrap_or_default();
    assert!(why.contains("no craton-kv"), "{why}");
}
