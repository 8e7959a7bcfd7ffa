use super::*;
use craton_lab::summary::Interval;

#[test]
fn a_claim_follows_only_from_an_interval_that_lies_on_one_side_of_the_bound() {
    let of = |low, high| {
        let ratio = Ratio { of_medians: (low + high) / 2.0, interval: Some(Interval { low, high }) };
        verdict("trace", Some(ratio), 1.01)
    };
    assert_eq!(of(0.998, 1.004), "trace: 1.0010 ×, 0.9980 to 1.0040 with 95 %; at most 1.0 %\n");
    assert!(of(1.02, 1.03).contains("; more than 1.0 %"));
    assert!(of(0.99, 1.02).contains("do not show"));
    assert!(verdict("trace", None, 1.01).contains("too few"));
}
