use super::*;

fn run(allocator: &str, index: usize, wall_s: f64) -> Run {
    Run { wall_s, peak_rss_bytes: 4096, ..Run::without(allocator, index, Status::Ok) }
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
    assert_eq!(summary.wall_s, Spread { median: 2.0, min: 1.0, max: 3.0 });
    assert_eq!(summary.peak_rss_bytes.median, 4096.0);
    assert_eq!(summarize(&runs, "c"), None);
    assert_eq!(summarize(&runs[2..3], "a"), None);
}

#[test]
fn a_ratio_is_of_medians_and_its_ends_are_of_rounds() {
    let runs =
        [run("a", 0, 1.0), run("b", 0, 2.0), run("a", 1, 3.0), run("b", 1, 4.0), run("a", 2, 5.0), run("b", 2, 5.0)];
    let ratio = ratio(&runs, "a", "b", Figure::Wall).unwrap();
    assert_eq!(ratio, Ratio { of_medians: 0.75, min: 0.5, max: 1.0 });
}

#[test]
fn a_ratio_needs_a_round_of_both_and_a_base_above_0() {
    let runs = [run("a", 0, 1.0), run("b", 1, 2.0), run("b", 2, 2.0), Run::without("a", 2, Status::TimedOut)];
    assert_eq!(ratio(&runs, "a", "b", Figure::Wall), None);
    let runs = [run("a", 0, 1.0), run("b", 0, 2.0)];
    assert_eq!(ratio(&runs, "a", "b", Figure::MinorFaults), None);
    assert_eq!(ratio(&runs, "a", "b", Figure::PeakRss).unwrap().of_medians, 1.0);
}
