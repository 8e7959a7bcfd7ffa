use super::*;

#[test]
fn written_memory_is_in_the_samples() {
    let mut meter = Meter::start();
    let before = meter.look();
    let _object = Object::written(32 << 20);
    assert!(meter.look().rss_bytes >= before.rss_bytes + (30 << 20));
    assert!(peak_bytes() >= before.rss_bytes + (30 << 20));
}
