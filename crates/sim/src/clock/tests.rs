use super::*;

#[test]
fn clones_show_the_same_time_and_it_never_goes_back() {
    let clock = VirtualClock::new(5);
    let other = clock.clone();
    assert_eq!((clock.now_ns(), clock.advance(10), other.now_ns()), (5, 15, 15));
    assert_eq!(other.advance(u64::MAX), u64::MAX);
    assert_eq!((clock.advance(1), clock.now_ns()), (u64::MAX, u64::MAX));
}
