use super::*;

#[test]
fn draining_a_hugepage_costs_no_call_in_steady_state() {
    let played = play(Loop::Drain, 3000, false).expect("room");
    assert_eq!(played.steady_calls(), 0.0, "{:?}", played.calls.last());
    assert!(play(Loop::Drain, 3000, true).expect("room").steady_calls() >= 1.0);
}

#[test]
fn a_large_span_and_a_small_one_that_stays_strand_no_hugepages() {
    let played = play(Loop::Strand, 5000, false).expect("room");
    // Spans that stay need a hugepage every 256 turns.
    assert!(played.steady_calls() < 10.0 / 256.0, "{}", played.steady_calls());
    // A hugepage a turn would exceed this.
    assert!(played.hugepages_over <= played.limit + 64, "{played:?}");
}
