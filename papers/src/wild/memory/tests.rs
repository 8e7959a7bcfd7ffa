use super::*;

#[test]
fn written_memory_is_in_the_samples() {
    let mut meter = Meter::start();
    let before = meter.sample();
    let _object = Object::written(32 << 20);
    assert!(meter.sample().rss_bytes >= before.rss_bytes + (30 << 20));
    assert!(peak_bytes() >= before.rss_bytes + (30 << 20));
}
