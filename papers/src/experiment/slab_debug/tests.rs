use super::*;
use craton_lab::summary::Interval;

#[test]
fn a_claim_follows_only_from_an_interval_that_lies_on_one_side_of_the_bound() {
    let of =
        |low, high| verdict(Some(Ratio { of_medians: (low + high) / 2.0, interval: Some(Interval { low, high }) }));
    assert!(of(0.998, 1.004).contains("at most 0.5 percent"));
    assert!(of(1.006, 1.009).contains("more than 0.5 percent"));
    assert!(of(0.99, 1.01).contains("do not show"));
    assert!(verdict(Some(Ratio { of_medians: 1.0, interval: None })).contains("too few"));
    assert!(verdict(None).contains("too few"));
}
