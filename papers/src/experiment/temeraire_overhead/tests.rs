use super::*;

const SMALL: (u64, u64) = (64 << 20, 400_000);

fn played(way: usize) -> Row {
    let (name, how) = &WAYS[way];
    let (row, samples) = play("built-in", &Profile::built_in(), (name, how), SMALL);
    assert!(row.is_ok(), "{}", row.word("status"));
    assert_eq!((samples.len() - 1) % 3600, 0);
    row
}

#[test]
fn the_built_in_profile_has_little_overhead_and_lies_on_hugepages() {
    let row = played(0);
    assert!((0.0..0.5).contains(&row.num("overhead_worst")), "{}", row.num("overhead_worst"));
    assert!(row.num("overhead") <= row.num("overhead_worst"));
    assert!(row.num("coverage") > 0.7, "{}", row.num("coverage"));
    assert!(row.num("slab_overhead") > 0.0 && row.int("backed_bytes") > row.int("live_bytes"));
}

#[test]
fn coverage_falls_where_hugepages_are_scarce_and_where_the_program_forks() {
    let (plenty, scarce, forks) = (played(0), played(3), played(4));
    assert!(scarce.num("coverage") < 0.55, "{}", scarce.num("coverage"));
    assert!(forks.num("coverage_worst") < plenty.num("coverage_worst") - 0.1, "{}", forks.num("coverage_worst"));
}

#[test]
fn the_profiles_own_lives_take_the_time_that_they_take() {
    let (hour, own) = (played(0), played(1));
    assert!((hour.num("simulated_s") % 3600.0) < 1.0 && hour.num("stretch") > 10.0);
    let run_s = 3600.0 / hour.num("stretch");
    let runs = own.num("simulated_s") / run_s;
    assert!((runs - runs.round()).abs() < 0.01 && runs.round() >= 1.0, "{runs} runs of {run_s} s");
}

#[test]
fn lives_are_longer_where_fewer_events_fill_the_hour() {
    let profile = Profile::parse("1024, 5, 100\n", "p").expect("good");
    // 180,000 births an hour.
    assert!((stretch(&profile, 1024 * 1000, 360_000) - 1.0).abs() < 1e-9);
    assert!((stretch(&profile, 1024 * 1000, 36_000) - 10.0).abs() < 1e-9);
}

#[test]
fn a_line_has_the_worst_of_each_part_of_the_time() {
    let sample = |i: u64| Sample { time_s: i as f64, span_bytes: 1000, beyond_bytes: i % 10, ..Sample::default() };
    let samples: Vec<Sample> = (0..1200).map(sample).collect();
    let points = line("p", &samples).points;
    assert_eq!((points.len(), points[0].x, points[0].y), (120, 9.0, 0.009));
}

#[test]
fn a_profile_that_cannot_be_played_is_a_row_that_says_why() {
    let profile = Profile::parse("1000000, 5, 100\n", "p").expect("good");
    let (row, samples) = play("p", &profile, ("plenty", &WAYS[0].1), (1 << 20, 1000));
    assert!(row.word("status").contains("too small") && row.int("backed_bytes") == 0, "{}", row.word("status"));
    assert!(samples.is_empty() && line("p", &samples).points.is_empty());
}
