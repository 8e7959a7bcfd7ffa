extern crate std;
use super::*;

#[test]
fn a_wait_ends_with_its_time_or_at_once_when_it_has_happened_meanwhile() {
    let event = Event::new();
    event.wait(event.times(), 1_000_000);
    let before = event.times();
    event.announce();
    event.wait(before, 600_000_000_000);
    assert_eq!(event.times(), before + 1);
}

#[test]
fn all_sleepers_are_woken() {
    let event = Event::new();
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while event.times() == 0 {
                    event.wait(0, 600_000_000_000);
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        event.announce();
    });
}
