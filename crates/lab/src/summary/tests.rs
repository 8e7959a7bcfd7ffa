use super::*;

fn run(allocator: &str, index: usize, wall_s: f64) -> Run {
    Run { wall_s, peak_rss_bytes: 4096, ..Run::without(allocator, index, Status::Ok) }
}

fn rounds(pairs: &[(f64, f64)]) -> Vec<Run> {
    pairs.iter().enumerate().flat_map(|(i, (a, b))| [run("a", i, *a), run("b", i, *b)]).collect()
}

#[test]
fn the_median_is_in_the_middle() {
    assert_eq!(Spread::of([]), None);
    assert_eq!(Spread::of([3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
    assert_eq!(Spread::of([9.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 9.0 }));
    assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
}

#[test]
fn failed_runs_are_counted_and_left_out() {
    let runs = [run("a", 0, 1.0), run("a", 1, 3.0), Run::without("a", 2, Status::Exit(1)), run("b", 0, 8.0)];
    let summary = summarize(&runs, "a").unwrap();
    assert_eq!((summary.ok, summary.failed), (2, 1));
    assert_eq!(summary.spread(Figure::Wall), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
    assert_eq!(summary.spread(Figure::PeakRss).unwrap().median, 4096.0);
    assert_eq!(summary.spread(Figure::SteadyRss), None, "the runs were too short for it");
    assert_eq!(summarize(&runs, "c"), None);
    assert_eq!(summarize(&runs[2..3], "a"), None);
}

#[test]
fn each_figure_has_its_place() {
    for (place, figure) in Figure::ALL.into_iter().enumerate() {
        assert_eq!(figure as usize, place);
    }
}

#[test]
fn a_ratio_is_of_medians_over_rounds_of_both() {
    let mut runs = rounds(&[(1.0, 2.0), (3.0, 4.0), (5.0, 5.0), (3.0, 4.0), (3.0, 4.0)]);
    runs.push(run("a", 5, 1000.0));
    let ratio = ratio(&runs, "a", "b", Figure::Wall).unwrap();
    assert_eq!(ratio.of_medians, 0.75);
    let interval = ratio.interval.unwrap();
    assert!((0.5..=0.75).contains(&interval.low) && (0.75..=1.0).contains(&interval.high), "{interval:?}");
}

#[test]
fn a_ratio_needs_a_round_of_both_and_numbers_above_0() {
    let runs = [run("a", 0, 1.0), run("b", 1, 2.0), run("b", 2, 2.0), Run::without("a", 2, Status::TimedOut)];
    assert_eq!(ratio(&runs, "a", "b", Figure::Wall), None);
    let runs = rounds(&[(1.0, 2.0)]);
    assert_eq!(ratio(&runs, "a", "b", Figure::MinorFaults), None);
    let one = ratio(&runs, "a", "b", Figure::PeakRss).unwrap();
    assert_eq!(one, Ratio { of_medians: 1.0, interval: None }, "one round has no interval");
    let four = rounds(&[(1.0, 2.0), (1.1, 2.0), (1.2, 2.0), (1.0, 2.0)]);
    assert_eq!(ratio(&four, "a", "b", Figure::Wall).unwrap().interval, None, "nor have four");
    let two = [&four[..6], &four[..6]];
    assert!(geomean(&two, "a", "b", Figure::Wall).unwrap().interval.is_some(), "three of each of two workloads have");
}

#[test]
fn intervals_are_narrow_where_rounds_agree_and_the_same_each_time() {
    let noisy = rounds(&[(1.0, 1.0), (1.3, 1.0), (0.8, 1.0), (1.1, 1.0), (0.9, 1.0)]);
    let quiet = rounds(&[(0.80, 1.0), (0.81, 1.0), (0.79, 1.0), (0.80, 1.0), (0.81, 1.0)]);
    let of = |runs: &[Run]| ratio(runs, "a", "b", Figure::Wall).unwrap().interval.unwrap();
    assert!(!of(&noisy).is_clear() && of(&noisy).low < 1.0 && of(&noisy).high > 1.0, "{:?}", of(&noisy));
    assert!(of(&quiet).is_clear() && of(&quiet).high < 0.82 && of(&quiet).low > 0.78, "{:?}", of(&quiet));
    assert_eq!(of(&noisy), of(&noisy));
}

/// Of seven rounds: the bootstrap of medians is known to be a little narrow.
#[test]
fn most_intervals_hold_the_true_ratio() {
    let mut rng = Rng::new(5, 5);
    let mut noise = || 1.0 + f64::from(rng.below(1000)) / 5000.0;
    let held = (0..400)
        .filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..7).map(|_| (noise(), noise())).collect();
            let interval = ratio(&rounds(&pairs), "a", "b", Figure::Wall).unwrap().interval.unwrap();
            interval.low <= 1.0 && interval.high >= 1.0
        })
        .count();
    assert!((340..=400).contains(&held), "{held} of 400");
}

#[test]
fn a_geomean_joins_workloads_and_leaves_out_those_without() {
    let (half, double, failed) = (rounds(&[(1.0, 2.0)]), rounds(&[(2.0, 1.0)]), [run("a", 0, 1.0)]);
    let mean = |all: &[&[Run]]| geomean(all, "a", "b", Figure::Wall).map(|r| r.of_medians);
    assert_eq!(mean(&[&half, &double, &failed]), Some(1.0));
    assert_eq!(mean(&[&half, &failed]), Some(0.5));
    assert_eq!(mean(&[&failed]), None);
}

/// Rounds whose speed differs by ten, and one outlier.
#[test]
fn a_ratio_within_rounds_does_not_see_what_slows_whole_rounds() {
    let mut runs = Vec::new();
    for round in 0..20 {
        let speed = if round % 3 == 0 { 10.0 } else { 1.0 };
        let jitter = 1.0 + (round % 5) as f64 / 1000.0;
        let own = if round == 7 { 50.0 } else { 1.1 * jitter * speed };
        runs.extend([run("a", round, own), run("b", round, speed), run("again", round, speed * jitter)]);
    }
    let ratio = within_rounds(&[&runs], "a", ["b", "again"], Figure::Wall).unwrap();
    let interval = ratio.interval.unwrap();
    assert!((1.095..1.105).contains(&ratio.of_medians), "{ratio:?}");
    assert!(interval.low > 1.09 && interval.high < 1.11, "{ratio:?}");
    assert_eq!(within_rounds(&[&runs[..3]], "a", ["b", "again"], Figure::Wall).unwrap().interval, None);
    assert_eq!(within_rounds(&[&runs], "c", ["b", "again"], Figure::Wall), None);
}
