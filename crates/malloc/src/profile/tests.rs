use super::*;
use std::vec::Vec;

fn ended(profile: &Profile, excess: u64) -> (Countdown, u64) {
    let bytes = profile.pace.interval().unwrap();
    profile.count_ended(Countdown { left: -(excess as i64), bytes })
}

#[test]
fn the_end_of_the_first_countdown_is_no_point_and_the_points_within_are_drawn() {
    let profile = Profile::new();
    let interval = profile.pace.interval().unwrap();
    let mut sum = 0;
    for _ in 0..4000 {
        profile.has_begun[CACHES].store(false, Relaxed);
        assert_eq!(profile.first_countdown(true), Countdown { left: FIRST, bytes: 0 });
        let (next, bytes) = profile.count_ended(Countdown { left: 0, bytes: 0 });
        assert!(next.left > 0 && next.bytes == interval && bytes % interval == 0, "{next:?}, {bytes}");
        sum += bytes;
    }
    let mean = sum as f64 / 4000.0;
    assert!((mean / FIRST as f64 - 1.0).abs() < 0.15, "{mean}");
    assert!(ended(&profile, 0).1 > 0, "later ones are points");
    assert_eq!(profile.first_countdown(true).bytes, interval, "another cache's is drawn");
    assert_eq!(profile.count_down(FIRST as u64), None, "the process's countdown has not ended");
}

#[test]
fn what_passes_at_once_behind_the_first_countdown_counts() {
    const MANY: u64 = 200 << 20;
    let (_, bytes) = ended(&Profile::new(), MANY);
    assert!((MANY / 2..MANY * 3 / 2).contains(&bytes), "{bytes}");
}

#[test]
fn an_excess_of_many_intervals_counts_whole() {
    let profile = Profile::new();
    let interval = profile.pace.interval().unwrap();
    ended(&profile, 0);
    for intervals in [7, 63, 127] {
        let sum: u64 = (0..1000).map(|_| ended(&profile, intervals * interval).1 / interval).sum();
        // The first point ended the countdown.
        let mean = sum as f64 / 1000.0 - 1.0;
        assert!((mean / intervals as f64 - 1.0).abs() < 0.06, "{mean} of {intervals}");
    }
}

#[test]
fn a_countdown_stands_for_the_interval_by_which_it_was_drawn() {
    let profile = Profile::new();
    profile.ask(1000);
    let drawn = profile.first_countdown(false);
    profile.ask(16 << 20);
    assert_eq!(profile.count_ended(Countdown { left: -1, ..drawn }).1, 1000);
    let off = profile.count_ended(Countdown { left: -1, bytes: 0 });
    assert_eq!((off.0.bytes, off.1), (16 << 20, 0), "it ends without a sample");
    // Of the process: its countdown is drawn anew, so that it may take a while.
    let points = (0..10_000).find_map(|_| profile.count_down(1 << 20)).unwrap();
    assert!(points.bytes >= 16 << 20 && points.interval == 16 << 20, "{points:?}");
}

#[test]
fn a_countdown_that_several_threads_end_counts_each_byte_once() {
    const LARGE: u64 = 8 << 20;
    const SMALL: u64 = 32 << 10;
    let profile = Profile::new();
    profile.ask(64 << 10);
    let count = |bytes, times| (0..times).filter_map(|_| profile.count_down(bytes)).map(|points| points.bytes).sum();
    let sum: u64 = std::thread::scope(|scope| {
        let small: Vec<_> = (0..3).map(|_| scope.spawn(|| count(SMALL, 20_000))).collect();
        let large: u64 = count(LARGE, 200);
        small.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>() + large
    });
    let all = (200 * LARGE + 3 * 20_000 * SMALL) as f64;
    assert!((sum as f64 / all - 1.0).abs() < 0.05, "{sum} of {all}");
}

#[test]
fn a_class_is_pending_until_its_sample_takes_all() {
    let profile = Profile::new();
    assert_eq!(profile.take_pending(3), 0);
    profile.add_pending(3, 10);
    profile.add_pending(3, 5);
    profile.add_pending(4, 7);
    assert_eq!([profile.take_pending(3), profile.take_pending(3), profile.take_pending(4)], [15, 0, 7]);
}

#[test]
fn an_option_begins_at_once() {
    let profile = Profile::new();
    profile.ask(1);
    assert_eq!(profile.first_countdown(true), Countdown { left: 1, bytes: 1 });
    assert!(ended(&profile, 0).1 > 0);
    assert!(profile.count_down(2).is_some());
}

#[test]
fn each_byte_of_a_thread_without_a_cache_has_the_same_chance() {
    const THREADS: u64 = 20_000;
    for (requests, size) in [(20, 200), (1, 100_000), (700, 64)] {
        let profile = Profile::new();
        let mut sum = 0;
        for _ in 0..THREADS {
            let mut left: Option<i64> = None;
            for _ in 0..requests {
                let before = left.map(|left| left - size as i64);
                if before.is_none_or(|before| before < 0) {
                    let (next, bytes) = profile.count_part(before, size);
                    (left, sum) = (Some(next), sum + bytes);
                } else {
                    left = before;
                }
            }
        }
        let (sum, all) = (sum as f64, (THREADS * requests * size) as f64);
        // Of 150 points at least.
        assert!((sum / all - 1.0).abs() < 0.5, "{sum} of {all}");
    }
}

#[test]
fn parts_follow_an_interval_that_changes_and_go_on_while_the_profile_is_off() {
    let profile = Profile::new();
    profile.ask(1);
    let (left, bytes) = profile.count_part(Some(-100_000), 100_000);
    assert!((0..=3).contains(&left) && (90_000..110_000).contains(&bytes), "{left}, {bytes}");
    profile.ask(0);
    let (left, bytes) = profile.count_part(Some(-1), 1);
    assert!((1..=(PART + PART / 2) as i64).contains(&left) && bytes == 0, "{left}, {bytes}");
}
