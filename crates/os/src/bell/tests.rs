extern crate std;
use super::*;

const LONG_NS: u64 = 600_000_000_000;

#[test]
fn a_sleep_ends_with_its_time() {
    assert!(!Bell::new().wait_ns(1_000_000));
}

#[test]
fn a_bell_that_was_rung_ends_each_sleep_until_it_is_silenced() {
    let bell = Bell::new();
    bell.ring();
    assert!(bell.wait_ns(LONG_NS) && bell.wait_ns(LONG_NS));
    bell.silence();
    assert!(!bell.is_rung() && !bell.wait_ns(1));
}

#[test]
fn a_byte_from_another_process_ends_one_sleep_and_hides_neither_nudge_nor_ring() {
    let bell = Bell::new();
    let write = || {
        // SAFETY: a byte of the bell, written as another process does.
        unsafe { Bell::outside(&raw const bell).cast_mut().write_volatile(1) };
    };
    write();
    assert!(!bell.wait() && !bell.wait_ns(1_000_000), "one at once, one with its time");
    write();
    bell.nudge();
    assert!(!bell.wait() && !bell.wait_ns(1_000_000));
    bell.ring();
    write();
    assert!(bell.wait() && bell.is_rung());
}

#[test]
fn a_nudge_ends_one_sleep_and_does_not_silence_a_rung_bell() {
    let bell = Bell::new();
    bell.nudge();
    bell.nudge();
    assert!(!bell.is_rung() && !bell.wait(), "at once");
    assert!(!bell.wait_ns(1_000_000), "with its time");
    bell.ring();
    bell.nudge();
    assert!(bell.wait() && bell.wait());
    bell.silence();
    std::thread::scope(|s| {
        let sleeper = s.spawn(|| bell.wait());
        std::thread::sleep(std::time::Duration::from_millis(20));
        bell.nudge();
        assert!(!sleeper.join().unwrap());
    });
}

#[test]
fn a_sleeper_is_woken() {
    let bell = Bell::new();
    std::thread::scope(|s| {
        let sleeper = s.spawn(|| bell.wait_ns(LONG_NS));
        std::thread::sleep(std::time::Duration::from_millis(20));
        bell.ring();
        assert!(sleeper.join().unwrap());
    });
}
