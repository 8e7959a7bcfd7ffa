use super::*;
use std::sync::atomic::AtomicU64;

#[test]
fn one_at_a_time_is_inside() {
    let (lock, count) = (Spin::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let _held = lock.lock();
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 6000);
}
