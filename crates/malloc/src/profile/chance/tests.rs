use super::*;

#[test]
fn a_weight_is_the_size_for_large_objects_and_the_interval_for_small_ones() {
    let interval = 512 << 10;
    assert_eq!(weight(1 << 30, interval), 1 << 30);
    let small = weight(16, interval) as f64;
    assert!((small / interval as f64 - 1.0).abs() < 1e-4, "{small}");
    // 1 / (1 − 1/e)
    let equal = weight(interval, interval) as f64;
    assert!((equal / interval as f64 - 1.581_976_7).abs() < 1e-5, "{equal}");
}

#[test]
fn the_exponential_is_that_of_the_standard_library() {
    for i in 0..400 {
        let x = f64::from(i) / 9.7;
        assert!((exp_of_minus(x) - (-x).exp()).abs() < 1e-9, "{x}");
    }
}
