use super::*;

fn config() -> Config {
    Config {
        profile: Profile::built_in(),
        heap_bytes: 4 << 20,
        events: 100_000,
        schedule: Schedule::Steady,
        threads: 3,
        remote_percent: 30,
        seed: 1,
    }
}

#[test]
fn a_run_is_repeated_whatever_the_threads_timing() {
    for (name, schedule) in Schedule::ALL {
        let config = Config { schedule, ..config() };
        let first = run(&config).expect("the heap is large enough");
        assert!(first.births > first.deaths && first.deaths > 40_000 && first.remote > 0, "{name}: {first}");
        for _ in 0..3 {
            assert_eq!(run(&config), Ok(first), "{name}");
        }
    }
}

#[test]
fn who_frees_does_not_change_which_objects_are_read() {
    // The choice uses no random numbers.
    let alone = |remote_percent| run(&Config { threads: 1, remote_percent, ..config() }).expect("large enough");
    assert_eq!(alone(0), alone(100));
    assert_eq!(alone(100).remote, 0);
}

#[test]
fn the_share_of_remote_frees_is_near_the_one_asked_for() {
    for percent in [0, 10, 100] {
        let outcome = run(&Config { remote_percent: percent, ..config() }).expect("large enough");
        let share = 100.0 * outcome.remote as f64 / outcome.deaths as f64;
        assert!((share - f64::from(percent)).abs() < 1.0, "{share} at {percent}");
    }
}

#[test]
fn a_ring_of_full_channels_moves_on() {
    // In bursts far larger than a channel.
    let config =
        Config { schedule: Schedule::Spikes, heap_bytes: 8 << 20, remote_percent: 100, threads: 2, ..config() };
    let outcome = run(&config).expect("large enough");
    assert_eq!(outcome.remote, outcome.deaths);
    assert!(outcome.remote > 4 * CHANNEL as u64);
}

#[test]
fn a_seed_or_another_number_of_threads_changes_the_checksum() {
    let sum = |config| run(&config).expect("large enough").checksum;
    let first = sum(config());
    assert_ne!(first, sum(Config { seed: 2, ..config() }));
    assert_ne!(first, sum(Config { threads: 2, ..config() }));
}

#[test]
fn a_heap_too_small_for_the_threads_is_refused() {
    let profile = Profile::parse("4000, 1, 1\n", "p").expect("good");
    let why = run(&Config { profile, heap_bytes: 200_000, ..config() }).expect_err("66 kB a thread");
    assert!(why.contains("66666 bytes"), "{why}");
}
