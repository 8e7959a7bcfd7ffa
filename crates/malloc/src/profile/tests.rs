use super::*;

#[test]
fn the_end_of_the_first_countdown_is_no_point_and_the_points_within_are_drawn() {
    let profile = Profile::new();
    let interval = profile.pace.interval().unwrap();
    let mut sum = 0;
    for _ in 0..4000 {
        profile.has_begun[CACHES].store(false, Relaxed);
        assert_eq!(profile.first_countdown(true), FIRST);
        let (next, bytes) = profile.count_ended(0);
        assert!(next > 0 && bytes % interval == 0, "{next}, {bytes}");
        sum += bytes;
    }
    let mean = sum as f64 / 4000.0;
    assert!((mean / FIRST as f64 - 1.0).abs() < 0.15, "{mean}");
    assert!(profile.count_ended(0).1 > 0, "later ones are points");
    assert!(profile.first_countdown(true) != FIRST || profile.first_countdown(true) != FIRST);
    assert_eq!(profile.count_down(FIRST as u64), None, "the process's countdown has not ended");
}

#[test]
fn what_passes_at_once_behind_the_first_countdown_counts() {
    const MANY: u64 = 200 << 20;
    let profile = Profile::new();
    let (_, bytes) = profile.count_ended(MANY);
    assert!((MANY / 2..MANY * 3 / 2).contains(&bytes), "{bytes}");
}

#[test]
fn an_option_begins_at_once() {
    let profile = Profile::new();
    profile.ask(1);
    assert_eq!(profile.first_countdown(true), 1);
    assert!(profile.count_ended(0).1 > 0);
    assert!(profile.count_down(2).is_some());
}
