extern crate std;
use super::*;
use std::vec::Vec;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MANY: HugePages = HugePages(100);

fn helped() -> Growth {
    let mut growth = Growth::NONE;
    growth.set_helped(true);
    growth
}

#[test]
fn slow_growth_begins_on_small_pages_and_fast_growth_does_not() {
    let mut growth = helped();
    assert!(growth.begins_small(MANY, SECOND), "the first of a burst");
    assert!(!growth.begins_small(MANY, SECOND + 2 * MS) && !growth.begins_small(MANY, SECOND + 21 * MS));
    assert!(growth.begins_small(MANY, SECOND + 41 * MS));
}

#[test]
fn nothing_begins_on_small_pages_where_no_thread_would_collapse_it() {
    let mut growth = Growth::NONE;
    assert!(!growth.begins_small(MANY, SECOND));
    growth.set_helped(true);
    assert!(growth.begins_small(MANY, 2 * SECOND));
    growth.set_helped(false);
    assert!(!growth.begins_small(MANY, 3 * SECOND));
}

#[test]
fn pauses_double_up_to_a_minute_and_are_forgotten() {
    let mut growth = Growth::NONE;
    let mut now = SECOND;
    let mut lengths = Vec::new();
    for _ in 0..8 {
        growth.pause(now);
        let start = now;
        while growth.is_paused() {
            assert!(growth.begins_small(MANY, now), "however fast");
            growth.pause(now);
            now += SECOND / 2;
            growth.tick(0, now);
        }
        lengths.push((now - start) / SECOND);
    }
    assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 64, 64]);
    assert!(!growth.begins_small(MANY, now));
    (0..60).for_each(|_| growth.tick(0, now));
    growth.pause(now);
    growth.tick(0, now + SECOND);
    assert!(!growth.is_paused());
}

#[test]
fn a_rise_refills_as_much_as_it_has_taken() {
    let mut growth = helped();
    growth.tick(10_000, SECOND);
    growth.record(9_000);
    assert_eq!((growth.refill_due(9_500), growth.refill_due(9_000 + RISE - 1)), (Pages(0), Pages(0)));
    assert_eq!(growth.refill_due(9_000 + RISE), Pages(RISE));
    growth.refilled(Pages(RISE));
    assert_eq!((growth.refill_due(9_000 + RISE), growth.refill_due(9_100 + RISE)), (Pages(0), Pages(100)));
    growth.end_refills();
    assert_eq!(growth.refill_due(90_000), Pages(0));
    growth.tick(90_000, 2 * SECOND);
    assert_eq!((growth.refill_due(90_000), growth.refill_due(92_000)), (Pages(0), Pages(2_000)));
    growth.set_helped(false);
    assert_eq!(growth.refill_due(92_000), Pages(0));
}

#[test]
fn one_is_cleared_ahead_of_slow_growth_of_a_large_heap() {
    let cleared = |lasted_ns: u64, demand, is_helped| {
        let mut growth = Growth::NONE;
        growth.set_helped(is_helped);
        growth.begins_small(demand, 5 * SECOND);
        assert!(!growth.clears(), "a first one may be the last");
        growth.begins_small(demand, 5 * SECOND + lasted_ns);
        let clears = growth.clears();
        growth.end_clears();
        assert!(!growth.clears());
        clears
    };
    assert!(cleared(4 * MS, MANY, true) && cleared(999 * MS, MANY, true));
    assert!(!cleared(3 * MS, MANY, true), "fast");
    assert!(!cleared(SECOND, MANY, true), "it may have ended");
    assert!(!cleared(50 * MS, HugePages(31), true) && !cleared(50 * MS, MANY, false));
}
