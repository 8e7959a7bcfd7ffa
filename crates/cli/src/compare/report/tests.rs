//! Reports of runs made up here.

use super::*;

fn run(allocator: &str, index: usize, wall_s: f64, status: Status) -> Run {
    Run {
        allocator: allocator.to_owned(),
        index,
        wall_s,
        cpu_s: wall_s / 2.0,
        peak_rss_bytes: 1 << 20,
        minor_faults: 1000,
        hugepage_bytes: 0,
        status,
        stderr: "one\ntwo \x1b[2J\n".to_owned(),
    }
}

fn args() -> args::Compare {
    let command = vec!["./program".into(), "two\nlines".into()];
    args::Compare { runs: 2, warmup: 0, timeout: None, json: None, command }
}

fn good() -> Vec<Run> {
    [("glibc", 0, 2.0), ("craton", 0, 1.0), ("glibc", 1, 4.0), ("craton", 1, 3.0)]
        .map(|(allocator, index, wall_s)| run(allocator, index, wall_s, Status::Ok))
        .to_vec()
}

fn line<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines()
        .find(|line| line.starts_with(start))
        .unwrap_or_default()
        .split("  ")
        .filter(|c| !c.is_empty())
        .collect()
}

#[test]
fn the_table_has_medians_ratios_and_their_spread() {
    let text = show(&good(), &args(), false);
    assert!(text.starts_with("./program two lines\nmedians; successful runs in turns: glibc 2, craton 2"), "{text}");
    let words: Vec<&str> = line(&text, "wall time").iter().map(|cell| cell.trim()).collect();
    assert_eq!(words, ["wall time", "3.000 s", "2.000 s", "0.67", "0.50-0.75"], "{text}");
    let words: Vec<&str> = line(&text, "on hugepages").iter().map(|cell| cell.trim()).collect();
    assert_eq!(words, ["on hugepages", "0 B", "0 B", "-", "-"], "{text}");
    assert!(text.contains("33 % less wall time, no clear difference in peak memory"), "{text}");
    assert!(!text.contains("do not count") && !text.contains('\x1b'), "{text}");
}

#[test]
fn colour_says_what_held_in_every_round() {
    let text = show(&good(), &args(), true);
    assert_eq!(text.matches("\x1b[32m").count(), 2, "{text}");
    assert_eq!(text.matches("\x1b[31m").count(), 0, "{text}");
    let mut runs = good();
    runs[1].wall_s = 3.0;
    runs[3].wall_s = 5.0;
    assert_eq!(show(&runs, &args(), true).matches("\x1b[31m").count(), 1);
    // One round better and one worse is no difference.
    runs[1].wall_s = 1.0;
    assert!(!line(&show(&runs, &args(), true), "wall time").concat().contains('\x1b'));
}

#[test]
fn a_failed_run_is_a_row_with_the_end_of_its_errors() {
    let mut runs = good();
    runs[3].status = Status::Signal(11);
    let text = show(&runs, &args(), false);
    assert!(text.contains("successful runs in turns: glibc 2, craton 1"), "{text}");
    assert!(text.contains("  craton  round 2  signal 11\n"), "{text}");
    assert!(text.contains("last on standard error, craton, round 2:\n  one\n  two ?[2J\n"), "{text}");
    runs.iter_mut().for_each(|run| run.status = Status::NotServed);
    let text = show(&runs, &args(), false);
    assert!(
        !text.contains("medians") && text.contains("craton: no process reported that Craton served it: likely"),
        "{text}"
    );
    assert_eq!(text.matches("not served\n").count(), 4, "{text}");
}

#[test]
fn no_runs_are_no_table() {
    assert_eq!(show(&[], &args(), true), "./program two lines\n");
}
