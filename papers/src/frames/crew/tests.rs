use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[test]
fn every_member_is_there_when_the_first_begins() {
    let here = AtomicUsize::new(0);
    let seen = crew([10, 20, 30], |member, part| {
        here.fetch_add(1, Relaxed);
        let (took, seen) = member.time(|| here.load(Relaxed));
        assert!(took < Duration::from_secs(100));
        (member.number, part, seen)
    });
    assert_eq!(seen, [(0, 10, 3), (1, 20, 3), (2, 30, 3)]);
}
