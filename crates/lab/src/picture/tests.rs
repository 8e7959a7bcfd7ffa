use super::*;

#[test]
fn an_estimate_is_written_with_its_interval() {
    let axis = Axis::log("ratio", Unit::Ratio);
    assert_eq!(Estimate::between(0.88, 0.85, 0.92).write(&axis), "0.88 (0.85–0.92)");
    assert_eq!(Estimate::between(0.88, 0.0, 0.92).write(&axis), "0.88", "an end without a place is no end");
}
