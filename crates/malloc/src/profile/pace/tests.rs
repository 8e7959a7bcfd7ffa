use super::*;

const MS: u64 = 1_000_000;

#[test]
fn costly_samples_double_the_interval_and_a_quiet_process_halves_it_again() {
    let pace = Pace::new();
    let mut now = MS;
    for _ in 0..2000 {
        pace.spend(now, now + 5000, 10);
        now += 50_000;
    }
    let busy = pace.interval().unwrap();
    assert!(busy > 8 * USUAL, "{busy}");
    for _ in 0..40 {
        now += 2000 * MS;
        pace.spend(now, now + 5000, 10);
    }
    assert_eq!(pace.interval(), Some(USUAL));
}

#[test]
fn an_interval_that_the_option_names_stays() {
    let pace = Pace::new();
    pace.ask(1024);
    for _ in 0..100 {
        pace.spend(MS, 2 * MS, 10 * MANY);
    }
    assert_eq!((pace.interval(), pace.asked()), (Some(1024), 1024));
    pace.ask(0);
    assert_eq!(pace.interval(), None);
    pace.ask(AUTO);
    assert_eq!((pace.interval(), pace.asked()), (Some(USUAL), AUTO));
}

#[test]
fn many_live_samples_double_the_interval() {
    let pace = Pace::new();
    pace.spend(MS, MS + 1000, MANY + 1);
    assert_eq!(pace.interval(), Some(2 * USUAL));
}

#[test]
fn gaps_have_the_interval_as_their_mean() {
    let pace = Pace::new();
    let sum: i64 = (0..20_000).map(|_| pace.gap(USUAL)).sum();
    let mean = sum as f64 / 20_000.0;
    assert!((mean / USUAL as f64 - 1.0).abs() < 0.05, "{mean}");
}
