use super::*;
use craton_lab::rng::Rng;

fn small(seed: u64) -> Config {
    Config { workers: 2, requests: 6000, seed, live_mb: 2 }
}

#[test]
fn the_same_seed_gives_the_same_checksum() {
    let first = run(&small(7));
    assert_eq!(first.requests, 6000);
    for _ in 0..3 {
        assert_eq!(run(&small(7)), first);
    }
}

#[test]
fn another_seed_gives_another_checksum() {
    assert_ne!(run(&small(7)).checksum, run(&small(8)).checksum);
    assert_ne!(run(&small(0)).checksum, run(&small(1)).checksum);
}

#[test]
fn any_number_of_workers_handles_every_request() {
    for workers in [1, 3, 8] {
        let config = Config { workers, requests: 1001, ..small(1) };
        assert_eq!(run(&config).requests, 1001);
        assert_eq!(run(&config), run(&config), "{workers} workers");
    }
    assert_eq!(run(&Config { requests: 0, ..small(1) }), Outcome::default());
}

#[test]
fn sizes_lie_around_a_kibibyte_with_a_long_tail() {
    let mut rng = Rng::new(1, 1);
    let mut sizes: Vec<usize> = (0..100_000).map(|_| rng.size()).collect();
    sizes.sort_unstable();
    assert!(sizes[0] >= 16 && sizes[99_999] <= 64 << 10, "{} to {}", sizes[0], sizes[99_999]);
    assert!((512..2048).contains(&sizes[50_000]), "median {}", sizes[50_000]);
    assert!(sizes[100] < 64 && sizes[99_900] > 8 << 10, "{} and {}", sizes[100], sizes[99_900]);
}

#[test]
fn random_numbers_stay_below_their_bound() {
    let mut rng = Rng::new(3, 4);
    for bound in [1, 2, 3, 1000, u32::MAX] {
        for _ in 0..1000 {
            assert!(rng.below(bound) < bound && rng.skewed(bound) < bound);
        }
    }
}
